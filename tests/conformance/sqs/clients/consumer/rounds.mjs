// What the JavaScript SDK sends for each verb of messages, so many times: node rounds.mjs ROUNDS; the queue by QUEUE_URL.
import {
  ChangeMessageVisibilityBatchCommand, ChangeMessageVisibilityCommand, DeleteMessageBatchCommand, DeleteMessageCommand,
  ReceiveMessageCommand, SendMessageBatchCommand, SendMessageCommand, SQSClient,
} from "@aws-sdk/client-sqs";

const many = Number(process.argv[2]);
const QueueUrl = process.env.QUEUE_URL;
const sqs = new SQSClient({});
const MessageAttributes = { kind: { DataType: "String", StringValue: "grün" }, bytes: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255]) } };
const wanted = { QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, MessageSystemAttributeNames: ["All"], MessageAttributeNames: ["All"] };

const take = async (least) => {
  const found = [];
  while (found.length < least) found.push(...((await sqs.send(new ReceiveMessageCommand(wanted))).Messages ?? []));
  return found;
};
let rounds = 0;
for (; rounds < many; rounds += 1) {
  await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: `${rounds}`, MessageAttributes }));
  for (const { ReceiptHandle } of await take(1)) {
    await sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 30 }));
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
  }
  await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries: [{ Id: "a", MessageBody: "a" }, { Id: "b", MessageBody: "b", MessageAttributes }] }));
  const Entries = (await take(2)).map(({ ReceiptHandle }, at) => ({ Id: `e${at}`, ReceiptHandle }));
  const longer = Entries.map((entry) => ({ ...entry, VisibilityTimeout: 30 }));
  for (const command of [
    new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: longer }), new DeleteMessageBatchCommand({ QueueUrl, Entries }),
  ]) {
    const { Failed } = await sqs.send(command);
    if (Failed?.length) throw new Error(JSON.stringify(Failed));
  }
}
console.log(JSON.stringify({ rounds }));
