// The sessions surface against the real server, and its stream against answers made here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionFailed, Gone, NotFound, SandbankError, Timeout } from "sandbank";
import { SandboxClient, StreamError, type StreamEvent } from "sandbank/sessions";
import { theServer } from "./server.js";

const server = theServer();
const client = new SandboxClient({ baseUrl: server.url, apiKey: server.token });
const image = process.env.SANDBANK_TEST_SESSION_IMAGE ?? "base";

test("a client without an address or a key says which variable it misses", () => {
  const { SANDBANK_URL, SANDBANK_TOKEN, SANDKASTEN_API_KEY } = process.env;
  const failsWith = (options: { baseUrl?: string }, code: string, name: string): void =>
    assert.throws(() => new SandboxClient(options), (error) => error instanceof SandbankError && error.code === code && error.message.includes(name));
  try {
    for (const name of ["SANDBANK_URL", "SANDBANK_TOKEN", "SANDKASTEN_API_KEY"]) delete process.env[name];
    failsWith({}, "bad_url", "SANDBANK_URL");
    failsWith({ baseUrl: server.url }, "no_api_key", "SANDKASTEN_API_KEY");
    process.env.SANDKASTEN_API_KEY = "a key";
    new SandboxClient({ baseUrl: server.url });
  } finally {
    delete process.env.SANDKASTEN_API_KEY;
    Object.assign(process.env, { SANDBANK_URL, SANDBANK_TOKEN }, SANDKASTEN_API_KEY === undefined ? {} : { SANDKASTEN_API_KEY });
  }
});

test("a session remembers, and tells what it ran", async () => {
  await using session = await client.createSession({ image });
  const first = await session.exec("mkdir -p sub && cd sub && x=42");
  assert.equal(first.exitCode, 0);
  const second = await session.exec("pwd; echo $x; false");
  assert.deepEqual([second.exitCode, second.output, second.truncated], [1, "/workspace/sub\n42", false]);
  assert.equal(second.cwd, "/workspace/sub");
  assert.ok(second.durationMs >= 0);
});

test("output comes as it is written, and then the ending", async () => {
  await using session = await client.createSession({ image });
  const events: StreamEvent[] = [];
  for await (const event of session.execStream("echo one; sleep 0.3; echo zw\u00f6lf; exit 3")) events.push(event);
  const chunks = events.flatMap((event) => (event.type === "chunk" ? [event.chunk] : []));
  assert.equal(chunks.join("").trimEnd(), "one\nzw\u00f6lf");
  assert.ok(chunks.length > 1, "it came at once");
  const last = events.at(-1);
  assert.ok(last?.type === "done" && last.exitCode === 3 && last.truncated === false && last.durationMs >= 300);
});

test("files are written, read and uploaded byte by byte", async () => {
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

test("sessions and workspaces are listed, found and ended", async () => {
  const workspaceId = `ws-${Date.now()}`;
  const session = await client.createSession({ image, workspaceId, ttlSeconds: 600 });
  assert.match(String(session.acquireSource), /^(pool|cold)$/);
  assert.equal((await client.getSession(session.id)).acquireSource, null);
  const info = await session.info();
  assert.equal(info.acquireSource, session.acquireSource);
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

test("what is not there is told as such", async () => {
  await assert.rejects(client.getSession("00000000-000"), (error) => error instanceof NotFound && error.code === "SESSION_NOT_FOUND");
  await using session = await client.createSession({ image });
  await session.destroy();
  await assert.rejects(async () => {
    for await (const event of session.execStream("true")) assert.fail(`it ran: ${event.type}`);
  }, Gone);
  await assert.rejects(client.getSession("not an id"), { code: "INVALID_REQUEST" });
});

test("out of time is a Timeout, streamed or not, and 0 is the server's own limit", async () => {
  await using session = await client.createSession({ image });
  const late = (error: unknown) => error instanceof Timeout && error.code === "COMMAND_TIMEOUT";
  await assert.rejects(session.exec("sleep 60", { timeoutMs: 300 }), late);
  await assert.rejects(async () => {
    for await (const event of session.execStream("sleep 60", { timeoutMs: 300 })) assert.equal(event.type, "chunk");
  }, late);
  const hasty = new SandboxClient({ baseUrl: server.url, apiKey: server.token, timeoutMs: 400 });
  const same = await hasty.getSession(session.id);
  assert.equal((await same.exec("sleep 1; echo late", { timeoutMs: 0 })).output, "late");
});

/** What a stream gives for an answer of these pieces, each after a pause. */
async function streamed(pieces: string[], options: { pauseMs?: number; silenceMs?: number } = {}): Promise<StreamEvent[]> {
  const answer = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, options.pauseMs ?? 0));
      const piece = pieces.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(new TextEncoder().encode(piece));
    },
  });
  const replies = [Response.json({ id: "s" }, { status: 201 }), new Response(answer)];
  const fetch = async () => replies.shift() as Response;
  const { silenceMs = 45_000 } = options;
  const session = await new SandboxClient({ baseUrl: "http://x", apiKey: "k", fetch, silenceMs }).createSession();
  const events: StreamEvent[] = [];
  for await (const event of session.execStream("x")) events.push(event);
  return events;
}

test("a stream's failures keep the server's code, and what is truncated says so", async () => {
  const done = 'event: done\ndata: {"exit_code":3,"cwd":"/tmp","duration_ms":7,"truncated":true}\n\n';
  assert.deepEqual(await streamed([done]), [{ type: "done", exitCode: 3, cwd: "/tmp", durationMs: 7, truncated: true }]);
  const error = (code: string) => [`event: error\ndata: {"error":"no luck","error_code":"${code}"}\n\n`];
  const told = (Class: typeof SandbankError, code: string) => (found: unknown) => found instanceof Class && found.code === code && found.message === "no luck";
  await assert.rejects(streamed(error("COMMAND_TIMEOUT")), told(Timeout, "COMMAND_TIMEOUT"));
  await assert.rejects(streamed(error("SESSION_DESTROYED")), told(Gone, "SESSION_DESTROYED"));
  await assert.rejects(streamed(error("INTERNAL_ERROR")), told(StreamError, "INTERNAL_ERROR"));
  await assert.rejects(streamed([done.slice(0, -1)]), ConnectionFailed);
  await assert.rejects(streamed(["event: done\ndata: {]\n\n"]), (found) => found instanceof SandbankError && found.code === "bad_answer");
});

test("a heartbeat is a sign of life", async () => {
  const done = 'event: done\ndata: {"exit_code":0}\n\n';
  const beats = Array.from({ length: 8 }, () => ": heartbeat\n\n");
  assert.equal((await streamed([...beats, done], { pauseMs: 50, silenceMs: 300 })).length, 1);
  await assert.rejects(streamed([done], { pauseMs: 600, silenceMs: 300 }), ConnectionFailed);
});
