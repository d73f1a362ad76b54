// The wire's types from the server's own document. Without --write it only tells, by its exit
// code, whether the committed file still says what the document says.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../../openapi/sandbank.json", import.meta.url);
const target = new URL("../src/wire.ts", import.meta.url);
const head = "// Made from openapi/sandbank.json by `npm run generate`. Do not edit.\n\n";

const made = head + astToString(await openapiTS(JSON.parse(readFileSync(document, "utf8"))));
if (process.argv.includes("--write")) {
  writeFileSync(target, made);
} else if (readFileSync(target, "utf8") !== made) {
  console.error("src/wire.ts is not what openapi/sandbank.json says: run `npm run generate`");
  process.exit(1);
}
