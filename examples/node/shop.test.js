'use strict';
const assert = require('node:assert');
const { after, before, beforeEach, test } = require('node:test');
const httpclient = require('urllib');
const { Message, Producer } = require('ali-ons');
const { startServer } = require('./pocketmq');

let server, shop;

before(async () => {
  server = await startServer();
  await server.ask('POST', '/api/topics', { name: 'orders', queues: 1 });
  const keys = { accessKeyId: 'any', accessKeySecret: 'any' }; // the client wants keys, the server does not
  shop = new Producer({ httpclient, nameSrv: server.nameSrv, producerGroup: 'shop', ...keys });
  await shop.ready();
});

beforeEach(async () => {
  await server.reset();
  await server.ask('POST', '/api/topics', { name: 'orders', queues: 1 });
});

after(async () => {
  await shop.close();
  await server.stop();
});

test('an order is stored', async () => {
  await shop.send(new Message('orders', 'created', 'order 17'));
  const [ order ] = await server.ask('GET', '/api/topics/orders/messages');
  assert.deepStrictEqual([ order.text, order.tags ], [ 'order 17', 'created' ]);
});

test('the request log tells what the client asked', async () => {
  await shop.send(new Message('orders', 'created', 'order 18'));
  const [ sent ] = await server.ask('GET', '/api/requests?topic=orders&response=SUCCESS&last=1');
  assert.strictEqual(sent.text, 'order 18');
  assert.strictEqual(sent.group, 'shop');
});

test('a refused send is an error', async () => {
  const words = { topic: 'orders', broker: 'broker-a', response: 'NO_PERMISSION', times: null };
  await server.ask('POST', '/api/faults', { effect: 'refuse', ...words });
  await assert.rejects(shop.send(new Message('orders', 'created', 'order 19')), /still failed/);
  const [ rule ] = await server.ask('GET', '/api/faults');
  assert.strictEqual(rule.hits[0].text, 'order 19');
});
