// The official Node client: what `test_other_clients.py` expects of every client. Argument: endpoint.
const { Producer, SimpleConsumer, PushConsumer, ConsumeResult, TransactionResolution } = require('rocketmq-client-nodejs');

const endpoints = process.argv[2];
const SECONDS = 60;

function message(topic, body, more) {
  return { topic, tag: 'A', keys: [`k${body}`], body: Buffer.from(body), properties: new Map([['a', body]]), ...more };
}

// One topic each: with several, this client may miss the settings at its start.
async function producing(topic, send) {
  const checker = { check: async () => TransactionResolution.COMMIT };
  const producer = new Producer({ endpoints, namespace: '', topics: [topic], checker });
  await producer.startup();
  await send(producer);
  await producer.shutdown();
}

// The bodies in the order of their arrival; the refused one is hidden for ten seconds the first time.
async function receive(consumerGroup, topic, count, refused) {
  const consumer = new SimpleConsumer({
    consumerGroup, endpoints, namespace: '', subscriptions: new Map([[topic, '*']]), awaitDuration: 5000,
  });
  await consumer.startup();
  const bodies = [];
  for (const end = Date.now() + SECONDS * 1000; bodies.length < count && Date.now() < end;) {
    for (const one of await consumer.receive(4, 20000)) {
      const body = one.body.toString();
      if (body === refused && one.deliveryAttempt === 1) {
        await consumer.changeInvisibleDuration(one, 10000);
        continue;
      }
      await consumer.ack(one);
      bodies.push(body);
    }
  }
  await consumer.shutdown();
  return bodies;
}

async function pushed(topic) {
  const seen = new Set();
  const messageListener = {
    async consume(one) {
      const body = one.body.toString();
      seen.add(`${body}/${one.deliveryAttempt}`);
      return body === 'm5' && one.deliveryAttempt === 1 ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    },
  };
  const consumer = new PushConsumer({
    endpoints, namespace: '', consumerGroup: 'push', subscriptions: new Map([[topic, '*']]), messageListener,
  });
  await consumer.startup();
  for (const end = Date.now() + SECONDS * 1000; seen.size < 11 && Date.now() < end;) {
    await new Promise(done => setTimeout(done, 100));
  }
  await consumer.shutdown();
  return [...seen].sort();
}

async function main() {
  await producing('NormalT', async producer => {
    for (let number = 0; number < 10; number++) await producer.send(message('NormalT', `m${number}`));
  });
  await producing('FifoT', async producer => {
    for (let number = 0; number < 6; number++) {
      await producer.send(message('FifoT', `f${number}`, { messageGroup: 'one' }));
    }
  });
  await producing('TransT', async producer => {
    const transaction = producer.beginTransaction();
    await producer.send(message('TransT', 'committed'), transaction);
    await transaction.commit();
  });
  console.log('NORMAL', ...(await receive('simple', 'NormalT', 10, 'm3')).sort());
  console.log('FIFO', ...await receive('fifo', 'FifoT', 6));
  console.log('TRANSACTION', ...await receive('trans', 'TransT', 1));
  console.log('PUSHED', ...await pushed('NormalT'));
  console.log('DONE');
  process.exit(0);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
