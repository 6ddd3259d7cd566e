'use strict';
// The JavaScript client `ali-ons`; run by test_foreign_clients.py. Arguments: name server, topic, group.
const httpclient = require('urllib');
const { Consumer, Producer, Message } = require('ali-ons');

const [ nameSrv, topic, group ] = process.argv.slice(2);
const options = { httpclient, nameSrv, accessKeyId: 'anything', accessKeySecret: 'anything' };

async function main() {
  const producer = new Producer({ ...options, producerGroup: `${group}_p` });
  producer.on('error', error => console.log(`ERROR ${error.message}`));
  await producer.ready();
  for (let at = 0; at < 10; at++) {
    const message = new Message(topic, at % 2 === 0 ? 'even' : 'odd', `body ${at}`);
    message.keys = [ `key${at}` ];
    const result = await producer.send(message);
    console.log(`SENT ${result.sendStatus} ${result.queueOffset >= 0}`);
  }
  const seen = new Set();
  let again = false;
  const consumer = new Consumer({ ...options, consumerGroup: group, consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET' });
  consumer.on('error', error => console.log(`ERROR ${error.message}`));
  await new Promise(resolve => {
    const timer = setTimeout(() => resolve(), 60000);
    consumer.subscribe(topic, '*', async message => {
      const body = message.body.toString();
      if (body === 'body 3' && !again) {
        again = true;
        console.log('AGAIN');
        return Consumer.ACTION_RETRY;
      }
      seen.add(body);
      console.log(`SEEN ${body} ${message.tags} ${message.keys}`);
      if (seen.size === 10) {
        clearTimeout(timer);
        resolve();
      }
    });
  });
  console.log(seen.size === 10 ? 'DONE' : 'TIMEOUT');
  await consumer.close();
  await producer.close();
  process.exit(0);
}

main().catch(error => {
  console.log(`FAILED ${error.stack}`);
  process.exit(1);
});
