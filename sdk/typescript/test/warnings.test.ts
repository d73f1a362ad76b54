// What the server did otherwise than asked is on what it made, and is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbank, type CreateOptions, type StartOptions } from "sandbank";
import { theServer } from "./server.js";

const server = theServer();
const NETWORK = /^network: this sandbox, which was there already/;

test("a sandbox that is found with another network says so", async () => {
  const told: string[] = [];
  const client = new Sandbank({ ...server, onWarning: (text) => told.push(text) });
  const key = `warned:${Date.now()}`;
  await using first = await client.sandboxes.create({ key, network: "none" });
  const same = await client.sandboxes.create({ key, network: "none" });
  assert.deepEqual([first.warnings, same.warnings, told], [[], [], []]);
  const again = await client.sandboxes.create({ key, network: "default" });
  assert.deepEqual([again.id, again.created], [first.id, false]);
  assert.equal(again.warnings.length, 1);
  assert.match(String(again.warnings[0]), NETWORK);
  assert.deepEqual(told, again.warnings);
  assert.deepEqual((await client.sandboxes.get(first.id)).warnings, []);
});

test("a field that there is not is told of a create and of a start", async () => {
  const told: string[] = [];
  const client = new Sandbank({ ...server, onWarning: (text) => told.push(text) });
  await using sandbox = await client.sandboxes.create({ network: "none", memoryMB: 512 } as CreateOptions);
  assert.match(String(sandbox.warnings[0]), /memoryMB/);
  const command = await sandbox.commands.start("true", { workdir: "/tmp" } as StartOptions);
  assert.match(String(command.warnings[0]), /workdir/);
  assert.deepEqual(told, [...sandbox.warnings, ...command.warnings]);
  const right = await sandbox.commands.start("true", { cwd: "/tmp" });
  assert.deepEqual(right.warnings, []);
  assert.deepEqual((await sandbox.commands.get(command.id)).warnings, []);
});

test("who does not ask for warnings finds them on the console", async (context) => {
  const warn = context.mock.method(console, "warn", () => undefined);
  const warnings = ["network: it was not changed"];
  const client = new Sandbank({ url: "http://x", fetch: async () => Response.json({ sandboxId: "s", created: false, warnings }) });
  assert.deepEqual((await client.sandboxes.create()).warnings, warnings);
  assert.deepEqual(warn.mock.calls.map((call) => call.arguments), [["sandbank: network: it was not changed"]]);
});
