// A program as people write it with the JavaScript SDK and sqs-consumer: sends, works on what comes, and prints what it did as JSON.
// node consume.mjs MESSAGES; queues by ORDERS_URL, GROUPS_URL. Every tenth message is refused once, every fiftieth always.
import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const many = Number(process.argv[2]);
const { ORDERS_URL, GROUPS_URL } = process.env;
const sqs = new SQSClient({});
const tries = {};
const orders = [];
const errors = [];
const groups = {};
let attributesRight = 0;
let beats = 0;

const send = async (url, entries) => {
  for (let at = 0; at < entries.length; at += 10) {
    const { Failed } = await sqs.send(new SendMessageBatchCommand({ QueueUrl: url, Entries: entries.slice(at, at + 10) }));
    if (Failed?.length) throw new Error(JSON.stringify(Failed));
  }
};
const numbers = Array.from({ length: many }, (_, n) => n);
await send(ORDERS_URL, numbers.map((n) => ({
  Id: `m${n}`,
  MessageBody: JSON.stringify({ n, text: "grün ✓" }),
  MessageAttributes: {
    kind: { DataType: "String", StringValue: n % 2 ? "odd" : "even" },
    bytes: { DataType: "Binary", BinaryValue: new Uint8Array([n % 256, 0, 255]) },
  },
})));
await send(GROUPS_URL, numbers.map((n) => ({
  Id: `m${n}`, MessageBody: `${n}`, MessageGroupId: `g${n % 7}`, MessageDeduplicationId: `d${n}`,
})));

const work = async (message) => {
  const { n, text } = JSON.parse(message.Body);
  const { kind, bytes } = message.MessageAttributes;
  attributesRight += kind.StringValue === (n % 2 ? "odd" : "even") && bytes.BinaryValue[0] === n % 256 && text === "grün ✓";
  tries[n] = (tries[n] ?? 0) + 1;
  if (Number(message.Attributes.ApproximateReceiveCount) !== tries[n]) errors.push(`${n}: count ${message.Attributes.ApproximateReceiveCount}, try ${tries[n]}`);
  // Longer than its visibility timeout of 2 s: heartbeats keep it. Done between two of them: one that comes after the delete is refused.
  if (n === 1) await new Promise((done) => setTimeout(done, 4500));
  if (n % 50 === 0 || (n % 10 === 0 && tries[n] === 1)) throw new Error(`refused ${n}`);
  orders.push(n);
  return message;
};
const shared = { sqs, batchSize: 10, waitTimeSeconds: 1, attributeNames: ["All"], messageAttributeNames: ["All"] };
const consumer = Consumer.create({
  ...shared, queueUrl: ORDERS_URL, handleMessage: work, visibilityTimeout: 2, heartbeatInterval: 1, terminateVisibilityTimeout: true,
});
const inOrder = Consumer.create({
  ...shared, queueUrl: GROUPS_URL, suppressFifoWarning: true, handleMessageBatch: async (messages) => {
    for (const { Body, Attributes } of messages) (groups[Attributes.MessageGroupId] ??= []).push(Number(Body));
    return messages;
  },
});
consumer.on("error", (error) => errors.push(String(error)));
inOrder.on("error", (error) => errors.push(String(error)));
consumer.on("processing_error", () => {});
sqs.middlewareStack.add((next, context) => (input) => {
  beats += context.commandName.startsWith("ChangeMessageVisibility") && input.input.Entries === undefined && input.input.VisibilityTimeout > 0;
  return next(input);
}, { step: "initialize" });

let quiet = 0;
consumer.on("empty", () => { quiet += 1; });
consumer.on("message_received", () => { quiet = 0; });
consumer.start();
inOrder.start();
const end = Date.now() + 60_000;
while (quiet < 3 && Date.now() < end) await new Promise((done) => setTimeout(done, 100));
for (const one of [consumer, inOrder]) one.stop({ abort: true });
console.log(JSON.stringify({ orders, tries, errors, groups, attributesRight, beats }));
