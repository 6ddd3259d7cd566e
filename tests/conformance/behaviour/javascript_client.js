'use strict';
// The client that `pocketmq behave` runs: JavaScript, `ali-ons`. It does what python_client.py does.
// A message whose body ends with `fails 1` fails at its first delivery.
const httpclient = require('urllib');
const { Consumer, Producer, Message } = require('ali-ons');

const INTERVAL_MS = 20;
const { NAMESRV_ADDR: nameSrv, BEHAVE_TOPIC: topic, BEHAVE_GROUP: group, BEHAVE_ROLE: role } = process.env;
const options = { httpclient, nameSrv, accessKeyId: 'anything', accessKeySecret: 'anything' };
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

async function main() {
  let ended = false;
  let end;
  const asked = new Promise(resolve => { end = resolve; });
  process.on('SIGTERM', () => { ended = true; end(); });
  const clients = [];
  if (role !== 'producer') {
    const consumer = new Consumer({
      ...options, consumerGroup: group, consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET', isBroadcast: false,
    });
    consumer.on('error', error => console.log(`ERROR ${error.message.split('\n')[0]}`));
    const deliveries = new Map();
    consumer.subscribe(topic, '*', async message => {
      console.log(`GOT ${message.queueId} ${message.queueOffset}`);
      const [ body, times ] = message.body.toString().split(' fails ');
      const earlier = deliveries.get(body) || 0;
      deliveries.set(body, earlier + 1);
      return earlier < Number(times) ? Consumer.ACTION_RETRY : undefined;
    });
    clients.push(consumer);
  }
  if (role === 'producer' || role === 'both') {
    const producer = new Producer({ ...options, producerGroup: `${group}_producer` });
    producer.on('error', error => console.log(`ERROR ${error.message.split('\n')[0]}`));
    await producer.ready();
    clients.push(producer);
    for (let number = 0; !ended; number++) {
      try {
        await producer.send(new Message(topic, '', `message ${number}`));
        console.log(`SENT ${number}`);
      } catch (error) {
        console.log(`FAILED ${number} ${error.message.split('\n')[0]}`);
      }
      await pause(INTERVAL_MS);
    }
  }
  await asked;
  await Promise.race([ Promise.all(clients.map(client => client.close())), pause(5000) ]);
  process.exit(0);
}

main().catch(error => {
  console.log(`FAILED ${error.stack}`);
  process.exit(1);
});
