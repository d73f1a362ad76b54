// The wire's types from the server's own document, before every build: what is made cannot drift.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const document = new URL("../../../openapi/sandbank.json", import.meta.url);
const target = new URL("../src/wire.ts", import.meta.url);
const head = "// Made from openapi/sandbank.json by `npm run build`. Do not edit.\n\n";

writeFileSync(target, head + astToString(await openapiTS(JSON.parse(readFileSync(document, "utf8")))));
