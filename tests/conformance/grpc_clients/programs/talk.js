// The official Node client; the words and the lines of every language's program are listed in `clients.py`.
//
//     node talk.js ENDPOINT plain|tls USER PASSWORD PREFIX STEP...
const { Producer, SimpleConsumer, PushConsumer, ConsumeResult } = require('rocketmq-client-nodejs');

const [endpoints, transport, user, password, prefix, ...steps] = process.argv.slice(2);
const SECONDS = 60;
const COMMIT = 1; // the package does not export TransactionResolution
const CLIENT = { endpoints, namespace: '', sslEnabled: transport === 'tls' };
if (user !== '-') CLIENT.sessionCredentials = { accessKey: user, accessSecret: password };

const name = word => `${prefix}_${word}`;
const sleep = ms => new Promise(done => setTimeout(done, ms));
const numbered = (letter, count) => Array.from({ length: count }, (_, number) => `${letter}${number}`);

function message(topic, body, more) {
  return { topic, tag: 'A', keys: [`k${body}`], body: Buffer.from(body), properties: new Map([['a', body]]), ...more };
}

// One topic each: with several, this client may miss the settings at its start.
async function producing(topic, work) {
  const checker = { check: async () => COMMIT };
  const producer = new Producer({ ...CLIENT, topics: [topic], checker });
  await producer.startup();
  const result = await work(producer);
  await producer.shutdown();
  return result;
}

async function send(topic, bodies, more) {
  await producing(topic, async producer => {
    for (const body of bodies) await producer.send(message(topic, body, more));
  });
}

// The bodies as they arrive; the refused one is hidden for ten seconds the first time.
async function receive(topic, group, count, refused) {
  const consumer = new SimpleConsumer({
    ...CLIENT, consumerGroup: name(group), subscriptions: new Map([[topic, '*']]), awaitDuration: 5000,
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

// Deliveries as body and attempt, until there are so many. The refused message fails the first time, or every time.
async function pushed(topic, group, count, { refused, always, says } = {}) {
  const seen = [];
  const messageListener = {
    async consume(one) {
      const body = one.body.toString();
      const isFirst = !seen.some(([other]) => other === body);
      seen.push([body, one.deliveryAttempt]);
      if (says) console.log(says, body, one.deliveryAttempt, one.tag, one.keys.sort().join(','), one.properties.get('a'));
      return body === refused && (isFirst || always) ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    },
  };
  const consumer = new PushConsumer({
    ...CLIENT, consumerGroup: name(group), subscriptions: new Map([[topic, '*']]), messageListener,
  });
  await consumer.startup();
  for (const end = Date.now() + SECONDS * 1000; seen.length < count && Date.now() < end;) await sleep(100);
  await consumer.shutdown();
  return seen;
}

const STEPS = {
  async send() {
    await send(name('Normal'), numbered('m', 10));
    return numbered('m', 10);
  },
  async simple() {
    return (await receive(name('Normal'), 'simple', 10, 'm3')).sort();
  },
  async push() {
    const seen = await pushed(name('Normal'), 'push', 11, { refused: 'm5' });
    return seen.map(([body, attempt]) => `${body}/${attempt}`).sort();
  },
  async fifo() {
    await send(name('Fifo'), numbered('f', 6), { messageGroup: 'one' });
    return await receive(name('Fifo'), 'fifo', 6);
  },
  async order() {
    await send(name('Order'), numbered('f', 6), { messageGroup: 'one' });
    return (await pushed(name('Order'), 'order', 7, { refused: 'f3' })).map(([body]) => body);
  },
  async transaction() {
    const topic = name('Trans');
    return await producing(topic, async producer => {
      const dropped = producer.beginTransaction();
      await producer.send(message(topic, 'dropped'), dropped);
      await dropped.rollback();
      const kept = producer.beginTransaction();
      await producer.send(message(topic, 'committed'), kept);
      await kept.commit();
      return await receive(topic, 'trans', 1);
    });
  },
  async check() {
    const topic = name('Trans');
    return await producing(topic, async producer => {
      await producer.send(message(topic, 'forgotten'), producer.beginTransaction());
      return await receive(topic, 'trans', 1);
    });
  },
  async delay() {
    const start = Date.now();
    await send(name('Delay'), ['d'], { deliveryTimestamp: new Date(start + 5000) });
    const bodies = await receive(name('Delay'), 'delay', 1);
    return [...bodies, Date.now() - start > 2900 ? 'late' : 'early'];
  },
  async recall() {
    const topic = name('Delay');
    const due = Date.now() + 6000;
    const same = await producing(topic, async producer => {
      const receipt = await producer.send(message(topic, 'recalled', { deliveryTimestamp: new Date(due) }));
      await producer.send(message(topic, 'kept', { deliveryTimestamp: new Date(due + 1000) }));
      const recalled = await producer.recallMessage(topic, receipt.recallHandle);
      return recalled.messageId === receipt.messageId;
    });
    return [same ? 'same' : 'other', ...await receive(topic, 'delay', 1)];
  },
  async member() {
    await pushed(name('Normal'), 'member', Infinity, { says: 'GOT' });
    return [];
  },
  async dead() {
    await send(name('Bad'), ['bad']);
    await pushed(name('Bad'), 'bad', Infinity, { refused: 'bad', always: true, says: 'TRIED' });
    return [];
  },
  async deadfifo() {
    await send(name('BadFifo'), ['bad'], { messageGroup: 'one' });
    await pushed(name('BadFifo'), 'badfifo', Infinity, { refused: 'bad', always: true, says: 'TRIED' });
    return [];
  },
};

async function main() {
  for (const step of steps) {
    try {
      console.log(step.toUpperCase(), ...await STEPS[step]());
    } catch (error) {
      console.log(step.toUpperCase(), 'refused', String(error.message).split(/\s+/).join(' '));
    }
  }
  console.log('DONE');
  process.exit(0);
}

main();
