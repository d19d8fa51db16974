// RocketMQ's own Node client on a service: what its consumers make of messages, as one line of JSON.
import rocketmq from 'rocketmq-client-nodejs';

const { FilterExpression, ConsumeResult, Producer, PushConsumer, SimpleConsumer } = rocketmq;
const { ENDPOINTS: endpoints, TOPIC: topic, ORDERED: ordered, KEY: accessKey, SECRET: accessSecret } = process.env;
const common = { endpoints, namespace: '', ...(accessKey ? { sessionCredentials: { accessKey, accessSecret } } : {}) };
const sizes = [1, 5, 1000, 300_000];
const shown = one => ({
  size: one.body.length, corrupted: Boolean(one.corrupted), tag: one.tag, keys: one.keys, group: one.messageGroup, id: one.messageId,
  colour: one.properties.get('colour'), attempt: one.deliveryAttempt, born: one.bornTimestamp?.getTime(), host: one.bornHost,
});

const producer = new Producer({ ...common, topic: [topic, ordered] });
await producer.startup();
const sent = [];
for (const size of sizes) {
  const properties = new Map([['colour', 'red']]);
  sent.push((await producer.send({ topic, tag: 'tag', keys: ['k1', 'k2'], properties, body: Buffer.alloc(size, 'x') })).messageId);
}
await producer.send({ topic: ordered, messageGroup: 'group', body: Buffer.from('ordered') });

async function simple(of, group, number) {
  const subscriptions = new Map([[of, new FilterExpression('*')]]);
  const consumer = new SimpleConsumer({ ...common, consumerGroup: group, subscriptions, awaitDuration: 3000 });
  await consumer.startup();
  const got = [];
  for (let i = 0; i < 10 && got.length < number; i++) {
    for (const one of await consumer.receive(16, 30_000)) {
      got.push(shown(one));
      await consumer.ack(one);
    }
  }
  await consumer.shutdown();
  return got;
}

async function pushed(group, number) {
  const got = [];
  let done;
  const all = new Promise(resolve => { done = resolve; });
  const consumer = new PushConsumer({
    ...common, consumerGroup: group, subscriptions: new Map([[topic, FilterExpression.SUB_ALL ?? new FilterExpression('*')]]),
    messageListener: { async consume(one) { got.push(shown(one)); if (got.length >= number) done(); return ConsumeResult.SUCCESS; } },
  });
  await consumer.startup();
  await Promise.race([all, new Promise(resolve => setTimeout(resolve, 30_000))]);
  await consumer.shutdown();
  return got;
}

const found = { sent, simple: await simple(topic, 'node-simple', sizes.length), ordered: await simple(ordered, 'node-ordered', 1) };
found.pushed = await pushed('node-push', sizes.length);
await producer.shutdown();
process.stdout.write(`${JSON.stringify(found)}\n`);
process.exit(0);
