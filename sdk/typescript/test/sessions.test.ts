// The sessions surface against the real server, where it has one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NotFound } from "sandbank";
import { SandboxClient, StreamError, type StreamEvent } from "sandbank/sessions";
import { theServer } from "./server.js";

const server = theServer();
const client = new SandboxClient({ baseUrl: server.url, apiKey: server.token });
// Newer servers have it; nothing but its absence may skip these.
const probe = await fetch(`${server.url}/v1/sessions`, { headers: { authorization: `Bearer ${server.token}` } });
const skip = probe.status === 404 ? "skipped: this server has no sessions" : false;
const image = process.env.SANDBANK_TEST_SESSION_IMAGE ?? "base";

test("a session remembers, and tells what it ran", { skip }, async () => {
  await using session = await client.createSession({ image });
  const first = await session.exec("mkdir -p sub && cd sub && x=42");
  assert.equal(first.exitCode, 0);
  const second = await session.exec("pwd; echo $x; false");
  assert.deepEqual([second.exitCode, second.output, second.truncated], [1, "/workspace/sub\n42", false]);
  assert.equal(second.cwd, "/workspace/sub");
  assert.ok(second.durationMs >= 0);
});

test("output comes as it is written, and then the ending", { skip }, async () => {
  await using session = await client.createSession({ image });
  const events: StreamEvent[] = [];
  for await (const event of session.execStream("echo one; sleep 0.3; echo zw\u00f6lf; exit 3")) events.push(event);
  const chunks = events.flatMap((event) => (event.type === "chunk" ? [event.chunk] : []));
  assert.equal(chunks.join("").trimEnd(), "one\nzw\u00f6lf");
  assert.ok(chunks.length > 1, "it came at once");
  assert.deepEqual(events.at(-1)?.type === "done" && events.at(-1), { ...events.at(-1), type: "done", exitCode: 3 });
});

test("files are written, read and uploaded byte by byte", { skip }, async () => {
  await using session = await client.createSession({ image });
  const bytes = Uint8Array.from({ length: 512 }, (_, index) => index % 256);
  await session.write("bytes", bytes);
  assert.deepEqual((await session.read("bytes")).content, bytes);
  assert.equal((await session.read("bytes", { maxBytes: 10 })).truncated, true);
  await session.writeText("text", "h\u00e9");
  assert.equal(await session.readText("text"), "h\u00e9");
  await session.write("empty", "");
  assert.equal((await session.read("empty")).content.length, 0);
  const paths = await session.upload(bytes, "/workspace", "uploaded.bin");
  assert.deepEqual(paths, ["/workspace/uploaded.bin"]);
  assert.deepEqual((await session.read("uploaded.bin")).content, bytes);
});

test("sessions and workspaces are listed, found and ended", { skip }, async () => {
  const workspaceId = `ws-${Date.now()}`;
  const session = await client.createSession({ image, workspaceId, ttlSeconds: 600 });
  const info = await session.info();
  assert.deepEqual([info.status, info.workspaceId], ["running", workspaceId]);
  assert.ok(info.expiresAt > info.createdAt);
  assert.equal((await client.getSession(session.id)).id, session.id);
  assert.ok((await client.listSessions()).some(({ id }) => id === session.id));
  assert.ok((await client.listWorkspaces()).some(({ id }) => id === workspaceId));
  assert.ok((await session.stats()).memoryBytes > 0);
  await session.destroy();
  await client.deleteWorkspace(workspaceId);
  assert.ok((await client.listWorkspaces()).every(({ id }) => id !== workspaceId));
});

test("what is not there is told as such", { skip }, async () => {
  await assert.rejects(client.getSession("00000000-000"), (error) => error instanceof NotFound && error.code === "session_not_found");
  await using session = await client.createSession({ image });
  await session.destroy();
  await assert.rejects(async () => {
    for await (const event of session.execStream("true")) assert.fail(`it ran: ${event.type}`);
  }, (error) => error instanceof StreamError || error instanceof NotFound);
});
