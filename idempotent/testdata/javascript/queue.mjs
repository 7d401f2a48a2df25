// Sends to or receives from a queue with the JavaScript SDK: node queue.mjs <queue> send|receive base64|text [body in hex…].
// That SDK leaves the encoding to its user, who does it here as Azure Functions wants it. What was received is printed as a
// list of bodies in hex, and deleted.
import { createRequire } from "node:module";
const require = createRequire(process.env.SDK + "/package.json");
const { QueueClient } = require("@azure/storage-queue");

const [name, what, encoding, ...bodies] = process.argv.slice(2);
const as = encoding === "base64" ? "base64" : "utf8";
const queue = new QueueClient(process.env.CONNECTION, name);
if (what === "send") {
  await queue.createIfNotExists();
  for (const hex of bodies) await queue.sendMessage(Buffer.from(hex, "hex").toString(as));
} else {
  const got = [];
  for (;;) {
    const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
    if (receivedMessageItems.length === 0) break;
    for (const m of receivedMessageItems) {
      got.push(Buffer.from(m.messageText, as).toString("hex"));
      await queue.deleteMessage(m.messageId, m.popReceipt);
    }
  }
  console.log(JSON.stringify(got));
}
