// Makes the ordinary calls of the JavaScript SDK to the four services and prints {"<service>: <call>": "ok" or the error}.
import { createRequire } from "node:module";
const require = createRequire(process.env.SDK + "/package.json");
const blobs = require("@azure/storage-blob");
const queues = require("@azure/storage-queue");
const files = require("@azure/storage-file-share");
const tables = require("@azure/data-tables");

const connection = process.env.CONNECTION;
const part = (name) => connection.split(";").find((p) => p.startsWith(name + "="))?.slice(name.length + 1);
const account = part("AccountName"), key = part("AccountKey");
const results = {};
const short = (e) => `${e.statusCode ?? ""} ${e.code ?? e.details?.errorCode ?? e.name} ${String(e.message).split("\n")[0]}`.slice(0, 200);
async function call(name, does) {
  try {
    const got = await does();
    results[name] = got === false ? "wrong result" : "ok";
    return got;
  } catch (e) {
    results[name] = short(e);
  }
}
// refused expects an error with a status and a code.
const refused = (name, status, code, does) =>
  call(name, async () => {
    try {
      await does();
    } catch (e) {
      const got = e.code ?? e.details?.odataError?.code ?? e.details?.errorCode;
      if (e.statusCode === status && (got === code || String(e.message).includes(code))) return true;
      throw e;
    }
    return false;
  });
const once = { retryOptions: { maxTries: 1, maxRetries: 0 } };
const all = async (pages) => {
  const found = [];
  for await (const one of pages) found.push(one.name ?? one.rowKey);
  return found.join();
};
const text = async (r) => (await streamed(r.readableStreamBody)).toString();
async function streamed(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
const soon = () => new Date(Date.now() + 3600e3);

// Blobs.
const bs = blobs.BlobServiceClient.fromConnectionString(connection, once);
const bc = bs.getContainerClient("box");
await call("blob: create a container", () => bc.create({ metadata: { a: "1" } }));
await call("blob: create it again", async () => (await bc.createIfNotExists()).succeeded === false);
await call("blob: container properties", async () => (await bc.getProperties()).metadata.a === "1");
await call("blob: container metadata", () => bc.setMetadata({ b: "2", b_c: "3", b1: "4" }));
await call("blob: list containers", async () => (await all(bs.listContainers())).includes("box"));
await call("blob: access policies", async () => {
  await bc.setAccessPolicy(undefined, [{ id: "p", accessPolicy: { permissions: "r", expiresOn: soon() } }]);
  return (await bc.getAccessPolicy()).signedIdentifiers[0].id === "p";
});
const name = "a b+c/ü (1).txt";
const bb = bc.getBlockBlobClient(name);
await call("blob: upload", () => bb.upload("hello", 5, { metadata: { m: "x" }, tags: { state: "new" }, blobHTTPHeaders: { blobContentType: "text/plain" } }));
await call("blob: download", async () => (await text(await bb.download())) === "hello");
await call("blob: download a range", async () => (await text(await bb.download(1, 3))) === "ell");
await call("blob: properties", async () => (await bb.getProperties()).contentType === "text/plain");
await call("blob: exists", async () => (await bb.exists()) && !(await bc.getBlobClient("none").exists()));
await call("blob: metadata", () => bb.setMetadata({ m: "y" }));
await call("blob: headers", () => bb.setHTTPHeaders({ blobContentType: "text/x" }));
await call("blob: tags", async () => (await bb.setTags({ state: "done" }), (await bb.getTags()).tags.state === "done"));
await call("blob: tier", () => bb.setAccessTier("Cool"));
await call("blob: blocks", async () => {
  const blocks = bc.getBlockBlobClient("blocks");
  await blocks.stageBlock("MQ==", "ab", 2);
  await blocks.stageBlock("Mg==", "cd", 2);
  await blocks.commitBlockList(["MQ==", "Mg=="]);
  return (await blocks.getBlockList("all")).committedBlocks.length === 2;
});
await call("blob: upload in parallel", () => bc.getBlockBlobClient("large").uploadData(Buffer.alloc(3 << 20), { blockSize: 1 << 20, maxSingleShotSize: 1 << 20 }));
await call("blob: download in parallel", async () => (await bc.getBlockBlobClient("large").downloadToBuffer()).length === 3 << 20);
await call("blob: append", async () => {
  const log = bc.getAppendBlobClient("log");
  await log.create();
  await log.appendBlock("one", 3, { conditions: { appendPosition: 0 } });
  await log.seal();
});
await call("blob: pages", async () => {
  const disk = bc.getPageBlobClient("disk");
  await disk.create(1024);
  await disk.uploadPages(Buffer.alloc(512, 1), 0, 512);
  await disk.clearPages(0, 512);
  await disk.resize(2048);
  return (await disk.getPageRanges()).pageRange.length === 0;
});
await call("blob: snapshot", async () => {
  const { snapshot } = await bb.createSnapshot();
  return (await text(await bb.withSnapshot(snapshot).download())) === "hello" && (await bb.withSnapshot(snapshot).delete());
});
await call("blob: copy", async () => (await (await bc.getBlobClient("copy").beginCopyFromURL(bb.url)).pollUntilDone()).copyStatus === "success");
const signed = await bb.generateSasUrl({ permissions: blobs.BlobSASPermissions.parse("r"), expiresOn: soon() });
await call("blob: copy from a URL", () => bc.getBlobClient("copy2").syncCopyFromURL(signed));
await call("blob: upload from a URL", () => bc.getBlockBlobClient("copy3").syncUploadFromURL(signed));
await call("blob: lease", async () => {
  const lease = bb.getBlobLeaseClient();
  await lease.acquireLease(15);
  await lease.renewLease();
  await lease.changeLease("00000000-0000-0000-0000-000000000001");
  await bb.setMetadata({}, { conditions: { leaseId: lease.leaseId } });
  await lease.releaseLease();
});
await call("blob: break the lease of a container", async () => {
  const lease = bc.getBlobLeaseClient();
  await lease.acquireLease(-1);
  await lease.breakLease(0);
});
await refused("blob: a stale ETag", 412, "ConditionNotMet", () => bb.upload("x", 1, { conditions: { ifMatch: '"0x1"' } }));
await refused("blob: one that is there", 409, "BlobAlreadyExists", () => bb.upload("x", 1, { conditions: { ifNoneMatch: "*" } }));
await call("blob: list", async () => (await all(bc.listBlobsFlat({ includeMetadata: true, includeTags: true, includeSnapshots: true }))).includes(name));
await call("blob: list by pages", async () => {
  for await (const page of bc.listBlobsFlat().byPage({ maxPageSize: 2 })) return page.segment.blobItems.length === 2 && !!page.continuationToken;
});
await call("blob: list by hierarchy", async () => (await all(bc.listBlobsByHierarchy("/"))).includes("a b+c/"));
await call("blob: account information", async () => (await bs.getAccountInfo()).accountKind === "StorageV2");
await call("blob: service properties", async () => {
  await bs.setProperties({ cors: [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 1 }] });
  return (await bs.getProperties()).cors[0].allowedMethods === "GET";
});
await call("blob: undelete one that is there", () => bb.undelete());
await call("blob: read with a service SAS", async () => (await text(await new blobs.BlobClient(signed).download())) === "hello");
await call("blob: read with the SAS of a container", async () => {
  const url = await bc.generateSasUrl({ permissions: blobs.ContainerSASPermissions.parse("rl"), startsOn: new Date(Date.now() - 60e3), expiresOn: soon() });
  const box = new blobs.ContainerClient(url);
  return (await text(await box.getBlobClient(name).download())) === "hello" && (await all(box.listBlobsFlat())).includes(name);
});
await call("blob: read with a stored policy", async () => {
  const url = await bc.generateSasUrl({ identifier: "p" });
  return (await text(await new blobs.ContainerClient(url).getBlobClient(name).download())) === "hello";
});
const sas = (services, permissions, expiresOn) =>
  blobs.generateAccountSASQueryParameters({ expiresOn, services, resourceTypes: "sco", permissions: blobs.AccountSASPermissions.parse(permissions) }, new blobs.StorageSharedKeyCredential(account, key)).toString();
const withSAS = (q) => new blobs.BlobServiceClient(bs.url + "?" + q, undefined, once);
await call("blob: write with an account SAS", () => withSAS(sas("b", "rwdlct", soon())).getContainerClient("box").getBlockBlobClient("by sas+").upload("x", 1));
await refused("blob: an expired SAS", 403, "AuthenticationFailed", () => withSAS(sas("b", "rl", new Date(Date.now() - 3600e3))).getContainerClient("box").getProperties());
await refused("blob: a SAS of another service", 403, "AuthorizationServiceMismatch", () => withSAS(sas("q", "rl", soon())).getContainerClient("box").getProperties());
await refused("blob: a SAS that may not write", 403, "AuthorizationPermissionMismatch", () => withSAS(sas("b", "rl", soon())).createContainer("other"));
const wrong = Buffer.alloc(64, 7).toString("base64");
await refused("blob: a wrong key", 403, "AuthenticationFailed", () => new blobs.BlobServiceClient(bs.url, new blobs.StorageSharedKeyCredential(account, wrong), once).getProperties());
await call("blob: delete", () => bb.deleteIfExists({ deleteSnapshots: "include" }));
await call("blob: delete the container", () => bc.delete());

// Queues.
const qs = queues.QueueServiceClient.fromConnectionString(connection, once);
const q = qs.getQueueClient("orders");
await call("queue: create", () => q.create({ metadata: { a: "1" } }));
await call("queue: create it again", async () => (await q.createIfNotExists({ metadata: { a: "1" } })).errorCode === undefined);
await call("queue: metadata", async () => (await q.setMetadata({ b: "2" }), (await q.getProperties()).metadata.b === "2"));
await call("queue: list", async () => (await all(qs.listQueues({ includeMetadata: true }))) === "orders");
await call("queue: send", () => q.sendMessage("<one> & two", { messageTimeToLive: 60 }));
await call("queue: peek", async () => (await q.peekMessages()).peekedMessageItems[0].messageText === "<one> & two");
await call("queue: receive, update and delete", async () => {
  const m = (await q.receiveMessages({ visibilityTimeout: 30 })).receivedMessageItems[0];
  const { popReceipt } = await q.updateMessage(m.messageId, m.popReceipt, "three", 10);
  await refused("queue: an old receipt", 404, "MessageNotFound", () => q.deleteMessage(m.messageId, m.popReceipt));
  await q.deleteMessage(m.messageId, popReceipt);
});
await call("queue: count and clear", async () => (await q.sendMessage("x"), (await q.getProperties()).approximateMessagesCount === 1 && (await q.clearMessages())));
await call("queue: access policies", async () => {
  await q.setAccessPolicy([{ id: "p", accessPolicy: { permissions: "raup", startsOn: new Date(Date.now() - 60e3), expiresOn: soon() } }]);
  return (await q.getAccessPolicy()).signedIdentifiers.length === 1;
});
await call("queue: service properties", async () => (await qs.getProperties()) && (await qs.setProperties({ queueAnalyticsLogging: { version: "1.0", deleteProperty: false, read: false, write: false, retentionPolicy: { enabled: false } } })));
await call("queue: send with a service SAS", async () => {
  const url = await q.generateSasUrl({ permissions: queues.QueueSASPermissions.parse("a"), expiresOn: soon() });
  const there = new queues.QueueClient(url, undefined, once);
  await there.sendMessage("x");
  await refused("queue: a SAS that may not receive", 403, "AuthorizationPermissionMismatch", () => there.receiveMessages());
});
await call("queue: receive with a stored policy", async () => {
  const url = await q.generateSasUrl({ identifier: "p" });
  return (await new queues.QueueClient(url).receiveMessages()).receivedMessageItems.length === 1;
});
await refused("queue: a wrong key", 403, "AuthenticationFailed", () => new queues.QueueServiceClient(qs.url, new queues.StorageSharedKeyCredential(account, wrong), once).getProperties());
await call("queue: delete", () => q.delete());

// Tables.
const allow = { allowInsecureConnection: true, ...once };
const tc = (name) => tables.TableClient.fromConnectionString(connection, name, allow);
const ts = tables.TableServiceClient.fromConnectionString(connection, allow);
const t = tc("Jobs");
await call("table: create", () => ts.createTable("Jobs"));
await call("table: create it again", () => t.createTable());
await call("table: list", async () => (await all(ts.listTables())).includes("Jobs"));
await call("table: insert", () => t.createEntity({ partitionKey: "p", rowKey: "it's 1", n: 1, big: 5n, when: new Date(0), flag: true, bytes: new Uint8Array([1]), text: "ü" }));
await call("table: read", async () => {
  const e = await t.getEntity("p", "it's 1");
  return e.n === 1 && e.big === 5n && e.flag && e.text === "ü" && e.bytes[0] === 1;
});
await refused("table: insert it again", 409, "EntityAlreadyExists", () => t.createEntity({ partitionKey: "p", rowKey: "it's 1" }));
await call("table: update on a condition", async () => {
  const { etag } = await t.getEntity("p", "it's 1");
  await t.updateEntity({ partitionKey: "p", rowKey: "it's 1", n: 2 }, "Merge", { etag });
  await refused("table: a stale ETag", 412, "UpdateConditionNotSatisfied", () => t.updateEntity({ partitionKey: "p", rowKey: "it's 1", n: 3 }, "Replace", { etag }));
});
await call("table: upsert", () => t.upsertEntity({ partitionKey: "p", rowKey: "2", n: 5 }, "Replace"));
await call("table: query", async () => (await all(t.listEntities({ queryOptions: { filter: "n gt 2", select: ["rowKey"] } }))) === "2");
await call("table: query by pages", async () => {
  for await (const page of t.listEntities().byPage({ maxPageSize: 1 })) return page.length === 1 && !!page.continuationToken;
});
await call("table: a transaction", () => t.submitTransaction([["create", { partitionKey: "p", rowKey: "3" }], ["delete", { partitionKey: "p", rowKey: "2" }]]));
await call("table: access policies", async () => {
  await t.setAccessPolicy([{ id: "p", accessPolicy: { permission: "raud", start: new Date(Date.now() - 60e3), expiry: soon() } }]);
  return (await t.getAccessPolicy())[0].id === "p";
});
await call("table: service properties", async () => !!(await ts.getProperties()));
await call("table: read with a service SAS", async () => {
  const query = tables.generateTableSas("Jobs", new tables.AzureNamedKeyCredential(account, key), { permissions: { query: true }, expiresOn: soon() });
  const there = new tables.TableClient(part("TableEndpoint"), "Jobs", new tables.AzureSASCredential(query), allow);
  await there.getEntity("p", "3");
  await refused("table: a SAS that may not write", 403, "AuthorizationPermissionMismatch", () => there.createEntity({ partitionKey: "p", rowKey: "9" }));
});
await call("table: read with an account SAS", async () => {
  const query = tables.generateAccountSas(new tables.AzureNamedKeyCredential(account, key), { permissions: tables.accountSasPermissionsFromString?.("rl") ?? { query: true, list: true }, expiresOn: soon(), services: { table: true } });
  return (await all(new tables.TableServiceClient(part("TableEndpoint"), new tables.AzureSASCredential(query), allow).listTables())).includes("Jobs");
});
await refused("table: a wrong key", 403, "AuthenticationFailed", () => new tables.TableServiceClient(part("TableEndpoint"), new tables.AzureNamedKeyCredential(account, wrong), allow).createTable("Other"));
await call("table: delete an entity", () => t.deleteEntity("p", "it's 1"));
await call("table: delete", () => t.deleteTable());

// Files.
const fs = files.ShareServiceClient.fromConnectionString(connection, once);
const share = fs.getShareClient("reports");
await call("file: create a share", () => share.create({ metadata: { a: "1" } }));
await call("file: share properties", async () => (await share.getProperties()).metadata.a === "1");
await call("file: share metadata and quota", async () => (await share.setMetadata({ b: "2" }), await share.setQuota(10), true));
await call("file: list shares", async () => (await all(fs.listShares({ includeMetadata: true }))) === "reports");
const dir = share.getDirectoryClient("a b");
await call("file: create a directory", () => dir.create());
await call("file: directory properties", () => dir.getProperties());
const file = dir.getFileClient("c+ü.txt");
await call("file: create", () => file.create(5, { metadata: { m: "x" } }));
await call("file: upload a range", () => file.uploadRange("hello", 0, 5));
await call("file: download", async () => (await text(await file.download())) === "hello");
await call("file: upload data", async () => (await file.uploadData(Buffer.from("hi")), (await file.downloadToBuffer()).toString() === "hi"));
await call("file: properties", async () => (await file.getProperties()).contentLength === 2);
await call("file: exists", async () => (await file.exists()) && !(await dir.getFileClient("none").exists()));
await call("file: metadata and headers", async () => (await file.setMetadata({ m: "y" }), await file.setHttpHeaders({ fileContentType: "text/x" }), true));
await call("file: resize and clear", async () => (await file.resize(1024), await file.clearRange(0, 512), true));
await call("file: list of ranges", async () => (await file.getRangeList()).rangeList !== undefined);
await call("file: list a directory", async () => (await all(dir.listFilesAndDirectories())) === "c+ü.txt");
await call("file: lease", async () => {
  const lease = new files.ShareLeaseClient(file);
  await lease.acquireLease(-1);
  await refused("file: a write without the lease", 412, "LeaseIdMissing", () => file.uploadRange("x", 0, 1)).catch(() => {});
  await lease.releaseLease();
});
await call("file: handles", async () => ((await all(file.listHandles())), true));
await call("file: access policies", async () => {
  await share.setAccessPolicy([{ id: "p", accessPolicy: { permissions: "r", startsOn: new Date(Date.now() - 60e3), expiresOn: soon() } }]);
  return (await share.getAccessPolicy()).signedIdentifiers[0].id === "p";
});
await call("file: service properties", async () => !!(await fs.getProperties()));
await call("file: read with a service SAS", async () => {
  const url = await file.generateSasUrl({ permissions: files.FileSASPermissions.parse("r"), expiresOn: soon() });
  const there = new files.ShareFileClient(url, undefined, once);
  await there.getProperties();
  await refused("file: a SAS that may not write", 403, "AuthorizationPermissionMismatch", () => there.uploadRange("x", 0, 1));
});
await refused("file: a wrong key", 403, "AuthenticationFailed", () => new files.ShareServiceClient(fs.url, new files.StorageSharedKeyCredential(account, wrong), once).getProperties());
await call("file: copy", () => dir.getFileClient("copy").startCopyFromURL(file.url));
await call("file: delete", () => file.deleteIfExists());
await call("file: delete the share", () => share.delete());

console.log(JSON.stringify(results));
