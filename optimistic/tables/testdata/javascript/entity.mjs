// Writes or reads one entity with the JavaScript SDK: node entity.mjs write|read. Values are printed with their types.
import { createRequire } from "node:module";
const require = createRequire(process.env.SDK + "/package.json");
const { TableClient } = require("@azure/data-tables");

const client = TableClient.fromConnectionString(process.env.CONNECTION, "interop", { allowInsecureConnection: true });
if (process.argv[2] === "write") {
  await client.createEntity({
    partitionKey: "p", rowKey: "js",
    n: 41,
    text: "grüße",
    flag: true,
    half: 0.5,
    whole: { type: "Double", value: "3.0" },
    big: { type: "Int64", value: "9007199254740993" },
    due: new Date("2026-01-31T12:00:05.125Z"),
    id: { type: "Guid", value: "a455c695-df98-5678-aaaa-81d3367e5a34" },
    raw: new Uint8Array([0, 1, 254, 255]),
  });
} else {
  const entity = await client.getEntity("p", process.argv[3], { disableTypeConversion: true });
  const out = {};
  for (const [name, v] of Object.entries(entity)) {
    if (["odata.metadata", "odata.etag", "etag", "timestamp", "partitionKey", "rowKey", "azconclineage"].includes(name)) continue;
    out[name] = v !== null && typeof v === "object" && "type" in v ? `${v.type} ${v.value}` : String(v);
  }
  console.log(JSON.stringify(out));
}
