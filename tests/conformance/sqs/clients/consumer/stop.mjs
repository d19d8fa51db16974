// What sqs-consumer promises about batches, events and stopping, one after the other; prints what happened as JSON.
// node stop.mjs; queues by BATCHES_URL, STOPPED_URL, EMPTY_URL, MISSING_URL.
import { ReceiveMessageCommand, SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const { BATCHES_URL, STOPPED_URL, EMPTY_URL, MISSING_URL } = process.env;
const sqs = new SQSClient({});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (holds) => {
  for (const end = Date.now() + 30_000; !holds() && Date.now() < end;) await pause(20);
};
const send = async (url, count) => {
  const Entries = Array.from({ length: count }, (_, n) => ({ Id: `m${n}`, MessageBody: `${n}` }));
  await sqs.send(new SendMessageBatchCommand({ QueueUrl: url, Entries }));
};
const once = (consumer, event) => new Promise((done) => consumer.once(event, (...values) => done(values)));
const stop = async (consumer, options) => {
  const stopped = once(consumer, "stopped");
  consumer.stop(options);
  await stopped;
};
const errors = [];
const watched = (consumer) => consumer.on("error", (error) => errors.push(error.message));
const shared = { sqs, batchSize: 10, waitTimeSeconds: 1 };

// A handler says which messages of its batch are done: those are deleted, the others come again.
const tries = {};
await send(BATCHES_URL, 10);
const batches = Consumer.create({
  ...shared, queueUrl: BATCHES_URL, visibilityTimeout: 2, handleMessageBatch: async (messages) => {
    for (const { Body } of messages) tries[Body] = (tries[Body] ?? 0) + 1;
    return messages.filter(({ Body }) => Number(Body) % 2 === 0 || tries[Body] === 2);
  },
});
watched(batches);
batches.start();
await until(() => Object.values(tries).reduce((sum, n) => sum + n, 0) === 15);
await stop(batches);

// A graceful stop lets what is being worked on end, and deletes it, before it says that it has stopped.
const order = [];
await send(STOPPED_URL, 5);
const stopped = Consumer.create({
  ...shared, queueUrl: STOPPED_URL, batchSize: 1, pollingCompleteWaitTimeMs: 5000, handleMessage: async (message) => {
    order.push("begun");
    await pause(1000);
    order.push("done");
    return message;
  },
});
watched(stopped);
stopped.on("stopped", () => order.push("stopped"));
stopped.start();
await until(() => order.length >= 1);
await stop(stopped);
let left = 0;
for (let empty = 0; empty < 2;) {
  const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl: STOPPED_URL, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }));
  left += Messages?.length ?? 0;
  empty += !Messages?.length;
}

// Nothing there is an event; a long poll that is aborted ends at once.
const idle = Consumer.create({ ...shared, queueUrl: EMPTY_URL, handleMessage: async (message) => message });
watched(idle);
const nothing = once(idle, "empty");
idle.start();
const [metadata] = await nothing;
await stop(idle);
const waiting = Consumer.create({ ...shared, queueUrl: EMPTY_URL, waitTimeSeconds: 20, handleMessage: async (message) => message });
let aborted;
waiting.on("error", (error) => { aborted = error.message; });
waiting.start();
await pause(500);
const began = Date.now();
await stop(waiting, { abort: true });
const abortMs = Date.now() - began;

// A queue that is not there is an error of SQS with its name, and of no message.
const missing = Consumer.create({ ...shared, queueUrl: MISSING_URL, handleMessage: async (message) => message });
const failed = once(missing, "error");
missing.start();
const [error, message, about] = await failed;
missing.stop({ abort: true });
console.log(JSON.stringify({
  errors, tries, order, left, abortMs, aborted, empty: metadata?.queueUrl, missing: [error.name, error.code, error.statusCode, message ?? null, about?.queueUrl],
}));
