// The published MCP client and inspector against a server: SANDBANK is its address, TOKEN its token,
// BIN the program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { SANDBANK, TOKEN, BIN } = process.env;
const TOOLS = ["bash", "editFile", "listFiles", "readFile", "sandboxUrl", "search", "writeFile"];

const overHttp = (headers = {}, token = TOKEN) =>
  new StreamableHTTPClientTransport(new URL(`${SANDBANK}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } },
  });
const overPipes = (...words) =>
  new StdioClientTransport({
    command: BIN, args: ["mcp", ...words], stderr: "inherit",
    env: { PATH: process.env.PATH, SANDBANK_URL: SANDBANK, SANDBANK_TOKEN: TOKEN },
  });

async function connected(transport) {
  const client = new Client({ name: "test", version: "1" });
  const errors = [];
  client.onerror = (error) => errors.push(error);
  await client.connect(transport);
  return { client, errors };
}
const call = (client, name, input, options) => client.callTool({ name, arguments: input }, undefined, options);
const text = (result) => result.content.map((part) => part.text).join("");

async function everything(transport) {
  const { client, errors } = await connected(transport);
  assert.equal(client.getServerVersion().name, "sandbank");
  await client.ping();
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
  for (const tool of tools) assert.equal(tool.inputSchema.type, "object");

  const progress = [];
  const slow = "for i in 1 2 3; do echo line $i; sleep 0.4; done; exit 3";
  const ran = await call(client, "bash", { command: slow }, { onprogress: (step) => progress.push(step) });
  assert.equal(text(ran), "line 1\nline 2\nline 3\n[exit code 3]");
  assert.equal(ran.structuredContent.exitCode, 3);
  assert.ok(!ran.isError);
  assert.ok(progress.length >= 2, `progress was told ${progress.length} times`);
  assert.ok(progress.some((step) => step.message?.startsWith("line")), JSON.stringify(progress));

  await call(client, "writeFile", { path: "src/a.txt", content: "one\ntwo\n" });
  assert.equal(text(await call(client, "readFile", { path: "src/a.txt" })), "one\ntwo\n");
  await call(client, "editFile", { path: "src/a.txt", old: "two", new: "three" });
  assert.equal(text(await call(client, "bash", { command: "cat src/a.txt" })), "one\nthree\n");
  assert.match(text(await call(client, "listFiles", {})), /a\.txt/);
  assert.match(text(await call(client, "search", { pattern: "thr.e" })), /a\.txt/);
  const both = await Promise.all([1, 2].map((n) => call(client, "bash", { command: `echo ${n}` })));
  assert.deepEqual(both.map(text), ["1\n", "2\n"]);

  const missing = await call(client, "readFile", { path: "none" });
  assert.equal(missing.isError, true);
  const misused = await call(client, "bash", { cmd: "ls" });
  assert.equal(misused.isError, true);
  await assert.rejects(call(client, "launchRockets", {}), { code: -32602 });
  await assert.rejects(client.listResources(), /does not support|-32601/);

  // A call that nobody wants any more ends, with what it started.
  const abort = new AbortController();
  const waiting = call(client, "bash", { command: "echo begun; sleep 7331" }, {
    signal: abort.signal,
    onprogress: (step) => step.message === "begun" && abort.abort(),
  });
  await assert.rejects(waiting);
  const deadline = Date.now() + 20_000;
  const look = { command: "ps ax | grep -c '[s]leep 7331' || true" };
  while (Number(text(await call(client, "bash", look))) > 0) {
    assert.ok(Date.now() < deadline, "the command outlives its call");
  }
  assert.deepEqual(errors, []);
  return client;
}

const http = overHttp();
const client = await everything(http);
const old = http.sessionId;
await http.terminateSession();
await client.close();
const ended = await fetch(`${SANDBANK}/mcp`, {
  method: "POST",
  headers: {
    authorization: `Bearer ${TOKEN}`, "content-type": "application/json", "mcp-session-id": old,
    accept: "application/json, text/event-stream",
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
});
assert.equal(ended.status, 404, "the session has ended");

await (await everything(overPipes())).close();

// A sandbox with a name is found again, from either side; one without ends with its session.
for (const [name, again] of [
  [() => overHttp({ "x-sandbank-session": "kept" }), () => overPipes("--session", "kept")],
]) {
  const first = await connected(name());
  await call(first.client, "writeFile", { path: "kept.txt", content: "kept" });
  await first.client.transport.terminateSession?.();
  await first.client.close();
  const second = await connected(again());
  assert.equal(text(await call(second.client, "readFile", { path: "kept.txt" })), "kept");
  await second.client.close();
}

await assert.rejects(connected(overHttp({}, "wrong")), /401|Unauthorized/);

const inspector = createRequire(import.meta.url).resolve("@modelcontextprotocol/inspector/package.json");
const launcher = join(dirname(inspector), "clients/launcher/build/index.js");
const inspect = async (...words) => {
  const { stdout } = await promisify(execFile)(process.execPath, [launcher, "--cli", ...words]);
  return JSON.parse(stdout);
};
const remote = [`${SANDBANK}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${TOKEN}`];
const listed = await inspect(...remote, "--method", "tools/list");
assert.deepEqual(listed.tools.map((tool) => tool.name).sort(), TOOLS);
const said = await inspect(...remote, "--method", "tools/call", "--tool-name", "bash", "--tool-arg", "command=echo inspected");
assert.equal(text(said), "inspected\n");
const piped = await inspect(
  BIN, "mcp", "-e", `SANDBANK_URL=${SANDBANK}`, "-e", `SANDBANK_TOKEN=${TOKEN}`, "--method", "tools/list",
);
assert.deepEqual(piped.tools.map((tool) => tool.name).sort(), TOOLS);

console.log("the client and the inspector work over HTTP and pipes");
process.exit(0);
