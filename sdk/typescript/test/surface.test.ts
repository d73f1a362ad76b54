// Everything the client offers, against the real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  BadRequest,
  CommandFailed,
  Conflict,
  ConnectionFailed,
  Gone,
  NotFound,
  Sandbank,
  SandbankError,
  Timeout,
  Unauthorized,
  type Sandbox,
} from "sandbank";
import { SandboxClient } from "sandbank/sessions";
import { OwnServer, SERVER_PROGRAM, theServer, until } from "./server.js";

const server = theServer();
const client = new Sandbank(server);
/** What sandboxes are made of where nobody says it. */
const usual = process.env.SANDBANK_TEST_IMAGE ?? "host";
let sandbox: Sandbox;

before(async () => {
  sandbox = await client.sandboxes.create({ network: "none", env: { BASE: "below" }, ports: [3000], memoryMb: 512, pids: 200, runtime: "python3.13" });
});
after(() => sandbox.stop());

test("the server tells about itself", async () => {
  assert.equal((await client.health()).ok, true);
  assert.ok((await client.doctor()).controls.length > 0);
  assert.ok((await client.images.list()).some(({ name }) => name === usual));
});

test("a sandbox is found by key and id, and is listed", async () => {
  const info = await sandbox.info();
  assert.deepEqual([info.network, info.ports, info.limits.pids, info.runtime], ["none", [3000], 200, "python3.13"]);
  assert.equal(sandbox.created, true);
  assert.match(String(sandbox.acquireSource), /^(pool|cold)$/);
  const again = await client.sandboxes.create({ key: info.key });
  assert.deepEqual([again.id, again.created, again.acquireSource], [sandbox.id, false, null]);
  assert.equal((await client.sandboxes.get(sandbox.id)).id, sandbox.id);
  const listed = (await client.sandboxes.list()).find(({ id }) => id === sandbox.id);
  assert.ok(listed?.keep && (await listed.info()).key === info.key);
  assert.ok((await sandbox.stats()).memoryBytes > 0);
  assert.equal((await sandbox.containment()).contained, true);
});

test("a block stops its sandbox at the end, unless it is kept", async () => {
  let id: string;
  {
    await using inner = await client.sandboxes.create({ network: "none" });
    id = inner.id;
    await inner.commands.run("echo last words");
  }
  const ended = await client.sandboxes.get(id);
  assert.equal((await ended.info()).state, "gone");
  assert.match((await ended.postMortem()).lastOutput, /last words/);
  await assert.rejects(ended.commands.run("true"), (error) => error instanceof Gone && error.status === 404);
  let kept: Sandbox;
  {
    await using inner = await client.sandboxes.create({ network: "none", keep: true });
    kept = inner;
  }
  assert.equal((await kept.refresh()).state, "running");
  await kept.stop();
});

test("a command gives its output and exit code", async () => {
  const result = await sandbox.commands.run("echo out; echo err >&2; exit 3");
  assert.deepEqual([result.stdout, result.stderr, result.exitCode, result.ok], ["out\n", "err\n", 3, false]);
  assert.deepEqual({ ...result.ending }, { kind: "exited", code: 3 });
  assert.equal(result.ending.describe(), "exited with 3");
  const argv = await sandbox.commands.run(["printf", "%s|", "a b", "$BASE", "'"]);
  assert.equal(argv.stdout, "a b|$BASE|'|");
  const env = await sandbox.commands.run("echo $BASE $MORE; pwd", { env: { MORE: "above" }, cwd: "/tmp" });
  assert.equal(env.stdout, "below above\n/tmp\n");
});

test("check throws the result, and a timeout is an ending", async () => {
  await assert.rejects(sandbox.commands.run("echo why >&2; exit 4", { check: true }), (error) => {
    assert.ok(error instanceof CommandFailed);
    assert.equal(error.result.exitCode, 4);
    assert.match(error.message, /exited with 4: why/);
    return true;
  });
  assert.equal((await sandbox.commands.run("true", { check: true })).ok, true);
  const late = await sandbox.commands.run("sleep 60", { timeoutMs: 100 });
  assert.deepEqual([late.exitCode, late.ending.kind, late.ending.describe()], [124, "timed_out", "ran out of time"]);
  await assert.rejects(sandbox.commands.run("true", { timeoutMs: 0 }), (error) => error instanceof BadRequest && error.code === "bad_timeout");
});

test("input comes from text, bytes, streams and iterables", async () => {
  const stream = () => new Blob(["from a ", "stream"]).stream();
  async function* parts() {
    yield new TextEncoder().encode("from ");
    yield new TextEncoder().encode("parts");
  }
  assert.equal((await sandbox.commands.run(["cat"], { stdin: "h\u00e9" })).stdout, "h\u00e9");
  assert.deepEqual((await sandbox.commands.run(["cat"], { stdin: new Uint8Array([0, 255, 10]) })).stdoutBytes, new Uint8Array([0, 255, 10]));
  assert.equal((await sandbox.commands.run(["cat"], { stdin: stream() })).stdout, "from a stream");
  assert.equal((await sandbox.commands.run(["cat"], { stdin: parts() })).stdout, "from parts");
  assert.equal((await sandbox.commands.run(["true"], { stdin: "x".repeat(3_000_000) })).exitCode, 0, "one that does not read");
});

test("an input that fails fails the run and leaves nothing behind", async () => {
  async function* broken() {
    yield new Uint8Array([1]);
    throw new Error("no more");
  }
  await assert.rejects(sandbox.commands.run(["sh", "-c", "cat; sleep 60"], { stdin: broken() }), /no more/);
  await until("it has ended", async () => (await sandbox.commands.list()).every(({ state }) => state === "ended"));
});

test("a run that is given up is ended", async () => {
  const giving = new AbortController();
  const running = sandbox.commands.run("echo begun > begun; sleep 60", { signal: giving.signal });
  await until("it has begun", async () => (await sandbox.files.list()).some(({ name }) => name === "begun"));
  giving.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
  await until("it has ended", async () => (await sandbox.commands.list()).every(({ state }) => state === "ended"));
  const ending = (await sandbox.commands.list()).at(-1)?.ending;
  assert.deepEqual([ending?.kind, ending?.signal], ["killed", 15]);
});

test("a command is left, found, fed, signalled and waited for", async () => {
  const started = await sandbox.commands.start("read line; echo got $line; trap 'echo hup; exit 7' HUP; echo ready; while :; do sleep 0.05; done", { stdin: true });
  const found = await sandbox.commands.get(started.id);
  await found.write("a ");
  await found.write("line\n");
  await assert.rejects(found.wait(100), Timeout);
  for await (const event of found) if (event.type === "output" && event.text.includes("ready")) break;
  await found.signal("HUP");
  const waited = await found.wait();
  assert.deepEqual([waited.exitCode, waited.stdout], [7, "got a line\nready\nhup\n"]);
  assert.equal((await found.status()).state, "ended");
  const killed = await sandbox.commands.start("sleep 60");
  await killed.kill();
  assert.equal((await killed.wait()).ending.kind, "killed");
});

test("a writer that comes too late is told", async () => {
  const first = await sandbox.commands.start(["cat"], { stdin: true });
  const second = await sandbox.commands.get(first.id);
  await first.write("one");
  await second.write("two");
  await assert.rejects(first.write("3"), (error) => error instanceof Conflict && error.code === "stdin_shared");
  await first.closeStdin();
  assert.equal((await first.wait()).stdout, "onetwo");
});

test("the same id starts one command", async () => {
  const id = `mine-${Date.now()}`;
  await sandbox.commands.start("echo x >> ids", { id });
  const again = await sandbox.commands.start("echo x >> ids", { id });
  await again.wait();
  assert.equal(await sandbox.files.readText("ids"), "x\n");
  await assert.rejects(sandbox.commands.start("echo other", { id }), Conflict);
});

test("a shell remembers", async () => {
  const shell = sandbox.shell();
  const first = await shell.run("cd /tmp; x=42; echo o; echo e >&2");
  assert.deepEqual([first.stdout, first.stderr, first.cwd, first.restarted], ["o\n", "e\n", "/tmp", false]);
  await assert.rejects(shell.run("false", { check: true }), CommandFailed);
  assert.equal((await shell.run("pwd; echo $x")).stdout, "/tmp\n42\n");
  assert.equal((await sandbox.shell("other").run("echo $x")).stdout, "\n");
  assert.equal((await shell.run("for i in 1 2; do echo o$i; echo e$i >&2; done", { merged: true })).output, "o1\ne1\no2\ne2\n");
  assert.equal((await shell.run("cat", { stdin: "fed" })).stdout, "fed");
  assert.equal((await shell.run("exit 5")).exitCode, 5);
  assert.equal((await shell.run("pwd")).restarted, true);
  const started = await shell.start("read line; echo got $line", { stdin: true });
  await started.write("it\n");
  assert.equal((await started.wait()).stdout, "got it\n");
  let text = "";
  for await (const event of shell.stream("echo streamed")) if (event.type === "output") text += event.text;
  assert.equal(text, "streamed\n");
});

test("a terminal is written to, resized, left and found again", async () => {
  const terminal = await sandbox.terminal({ cmd: ["sh"], rows: 30, cols: 100 });
  await terminal.write("stty size; echo first\n");
  let shown = "";
  for await (const bytes of terminal) {
    shown += Buffer.from(bytes).toString();
    if (shown.includes("30 100") && /\nfirst/.test(shown)) break;
  }
  await terminal.resize(40, 120);
  const again = await sandbox.terminal.attach(terminal.id, terminal.seq);
  await again.write("stty size; exit 3\n");
  let later = "";
  for await (const bytes of again) later += Buffer.from(bytes).toString();
  assert.match(later, /40 120/);
  assert.doesNotMatch(later, /first/);
  assert.equal((await again.wait()).exitCode, 3);

  const left = await sandbox.terminal();
  const reading = (async () => {
    for await (const bytes of left) assert.ok(bytes.length > 0);
  })();
  left.detach();
  await reading;
  assert.equal((await (await sandbox.commands.get(left.id)).status()).state, "running");
  await left.kill();
  assert.equal((await left.wait()).ending.kind, "killed");
});

test("files are written, read, listed, moved and removed", async () => {
  const { files } = sandbox;
  const odd = "d/\u00fc &?#%+ b";
  const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256);
  assert.equal((await files.write(odd, bytes, { mode: 0o600 })).mode, 0o600);
  assert.deepEqual(await files.read(odd), bytes);
  await files.write("d/stream", new Blob(["a", "b"]).stream());
  assert.equal(await files.readText("/workspace/d/stream"), "ab");
  await files.write("d/empty", "");
  assert.equal((await files.read("d/empty")).length, 0);
  await files.mkdir("d/e/f");
  await assert.rejects(files.mkdir("d/x/y", { parents: false }), NotFound);
  assert.equal((await files.stat("d/e")).kind, "directory");
  await files.move("d/stream", "d/e/moved");
  assert.deepEqual((await files.list("d")).map(({ name }) => name), ["e", "empty", odd.slice(2)]);
  assert.equal((await files.list("d")).truncated, false);
  assert.equal(await new Response(files.stream("d/e/moved")).text(), "ab");
  await files.remove("d", { recursive: true });
  await assert.rejects(files.stat("d"), NotFound);
  await assert.rejects(files.read("d/x"), NotFound);
  await assert.rejects(files.read("../x"), (error) => error instanceof BadRequest && error.code === "invalid_path");
});

test("a directory travels as an archive", async () => {
  const { files } = sandbox;
  await files.write("tree/a/b", "deep");
  await files.write("tree/large", new Uint8Array(2_000_000).fill(7));
  const archive = await new Response(files.downloadArchive("tree")).arrayBuffer();
  await files.uploadArchive(archive, "copy");
  assert.equal(await files.readText("copy/a/b"), "deep");
  assert.equal((await files.stat("copy/large")).size, 2_000_000);
  await files.uploadArchive(files.downloadArchive("tree"), "copy2");
  assert.equal(await files.readText("copy2/a/b"), "deep");
  await assert.rejects(files.uploadArchive("no archive", "copy3"), CommandFailed);
  await assert.rejects(new Response(files.downloadArchive("tree/nothing")).arrayBuffer(), CommandFailed);
  assert.ok((await files.list()).every(({ name }) => !name.startsWith(".sandbank-")), "nothing is left behind");
});

test("a port is published and closed", async () => {
  const url = await sandbox.url(3000);
  assert.equal(await sandbox.ports.publish(3000), url);
  assert.deepEqual((await sandbox.ports.list()).published.map(({ port }) => port), [3000]);
  await sandbox.ports.unpublish(3000);
  assert.deepEqual((await sandbox.ports.list()).published, []);
  await assert.rejects(sandbox.ports.publish(3001), (error) => error instanceof NotFound && error.code === "port_not_found");
});

test("a machine that was ready is told as such", { skip: SERVER_PROGRAM ? false : "skipped: SANDBANK_BIN names no server" }, async () => {
  const pooled = await OwnServer.start("--pool", `${usual}=1`);
  try {
    const { sandboxes } = new Sandbank(pooled);
    await until("a machine is ready", async () => {
      await using made = await sandboxes.create();
      return made.acquireSource === "pool";
    });
    await using other = await sandboxes.create({ memoryMb: 300 });
    assert.equal(other.acquireSource, "cold", "nobody keeps such a machine");
  } finally {
    await pooled.close();
  }
});

test("a sandbox is made by the engine that is named", async () => {
  const { engine } = await client.health();
  await using made = await client.sandboxes.create({ network: "none", engine });
  assert.equal((await made.info()).engine, engine);
  await assert.rejects(client.sandboxes.create({ engine: "abacus" }), { code: "engine_not_configured" });
});

test("a kept workspace outlives its sandbox", async () => {
  const workspace = `sdk-ts-${Date.now()}`;
  const first = await client.sandboxes.create({ network: "none", workspace });
  assert.equal((await first.info()).workspace, workspace);
  await first.files.write("kept", "still here");
  await first.stop();
  await using second = await client.sandboxes.create({ network: "none", workspace });
  assert.equal(await second.files.readText("kept"), "still here");
  assert.equal((await sandbox.info()).workspace ?? null, null);
  await second.stop();
  await new SandboxClient({ baseUrl: server.url, apiKey: server.token }).deleteWorkspace(workspace);
});

test("a paused sandbox refuses commands and goes on later", async () => {
  await sandbox.pause();
  await assert.rejects(sandbox.commands.start("true"), Conflict);
  await sandbox.resume();
  assert.equal((await sandbox.commands.run("true")).ok, true);
});

test("errors are classes with a code, a hint and the request's id", async () => {
  await assert.rejects(client.sandboxes.get("nosuchbox"), (error) => {
    assert.ok(error instanceof NotFound && error instanceof SandbankError && error instanceof Error);
    assert.deepEqual([error.name, error.code, error.status, error.retryable], ["NotFound", "sandbox_not_found", 404, false]);
    assert.ok(error.hint && error.requestId);
    return true;
  });
  await assert.rejects(sandbox.commands.get("nothing"), { code: "command_not_found" });
  await assert.rejects(new Sandbank({ url: server.url, token: "wrong" }).sandboxes.list(), Unauthorized);
  const nobody = new Sandbank({ url: "http://127.0.0.1:1", retry: { attempts: 2, firstPauseMs: 1 } });
  await assert.rejects(nobody.health(), ConnectionFailed);
  for (const url of ["ftp://x", "127.0.0.1:8080"]) {
    assert.throws(() => new Sandbank({ url }), (error) => error instanceof BadRequest && error.code === "bad_url");
  }
});
