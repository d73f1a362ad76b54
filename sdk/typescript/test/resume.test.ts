// A network that fails takes no byte and adds none.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { ConnectionFailed, Sandbank, Timeout, type OutputEvent, type Sandbox } from "sandbank";
import { CutProxy } from "./cut_proxy.js";
import { Random, SEED } from "./random.js";
import { OwnServer, SERVER_PROGRAM, theServer, until } from "./server.js";

const server = theServer();
const quick = { attempts: 20, firstPauseMs: 5, longestPauseMs: 1_500 };
let sandbox: Sandbox;
let proxy: CutProxy;
/** The same sandbox, by way of the proxy. */
let shaky: Sandbox;

before(async () => {
  const { sandboxes } = new Sandbank(server);
  sandbox = await sandboxes.create({ network: "none" });
  proxy = await CutProxy.to(server.url);
  shaky = await new Sandbank({ url: proxy.url, token: server.token, retry: quick }).sandboxes.get(sandbox.id);
});
beforeEach(() => {
  proxy.behaviour = {};
  proxy.cutAll();
  proxy.requests = "";
  proxy.cuts = 0;
});
after(async () => {
  await proxy.refuse();
  await sandbox.stop();
});

function bytesOf(events: OutputEvent[], stream: "stdout" | "stderr"): Buffer {
  return Buffer.concat(events.flatMap((event) => (event.type === "output" && event.stream === stream ? [event.data] : [])));
}

/** As they should be: numbered without a gap, nothing dropped, the ending last and once. */
function assertWhole(events: OutputEvent[]): void {
  const last = events.at(-1);
  assert.equal(last?.type, "ending");
  assert.deepEqual(last?.type === "ending" && { ...last.ending }, { kind: "exited", code: 0 });
  const numbers = events.slice(0, -1).map((event) => event.seq);
  assert.deepEqual(numbers, numbers.map((_, index) => index + 1));
  assert.ok(events.slice(0, -1).every((event) => event.type === "output"));
}

test("every byte comes once when connections are cut at random, also inside a record", async () => {
  const random = new Random(SEED);
  const known = random.bytes(3_000_000);
  await sandbox.files.write("known", known);
  for (let round = 0; round < 5; round += 1) {
    const command = await sandbox.commands.start(["cat", "known"]);
    proxy.behaviour.cutAfter = () => (random.below(3) > 0 ? random.below(900_000) : random.below(2_000));
    const events: OutputEvent[] = [];
    for await (const event of (await shaky.commands.get(command.id)).stream()) events.push(event);
    assertWhole(events);
    assert.ok(bytesOf(events, "stdout").equals(known), `seed ${SEED}, round ${round}: other bytes came`);
  }
  assert.ok(proxy.cuts > 10, `only ${proxy.cuts} cuts`);
});

test("two live streams of many small records come whole and in order through cuts", async () => {
  const random = new Random(SEED + 1);
  const known = random.bytes(60_000);
  await sandbox.files.write("small", known);
  const script = "for i in $(seq 0 299); do dd if=small bs=100 skip=$((2*i)) count=1 status=none; dd if=small bs=100 skip=$((2*i+1)) count=1 status=none >&2; done";
  const command = await sandbox.commands.start(script);
  proxy.behaviour.cutAfter = () => 300 + random.below(4_000);
  const events: OutputEvent[] = [];
  for await (const event of await shaky.commands.get(command.id)) events.push(event);
  assertWhole(events);
  const half = (which: number) => Buffer.concat(Array.from({ length: 300 }, (_, i) => known.subarray((2 * i + which) * 100, (2 * i + which + 1) * 100)));
  assert.ok(bytesOf(events, "stdout").equals(half(0)), `seed ${SEED}: other bytes on stdout`);
  assert.ok(bytesOf(events, "stderr").equals(half(1)), `seed ${SEED}: other bytes on stderr`);
  assert.ok(proxy.cuts > 10, `only ${proxy.cuts} cuts`);
});

test("a stream survives a time without any connection", async () => {
  const script = "for i in $(seq 200); do echo line $i; sleep 0.02; done";
  const command = await shaky.commands.start(script);
  const refusing = (async () => {
    for (let round = 0; round < 2; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 700));
      await proxy.refuse();
      await new Promise((resolve) => setTimeout(resolve, 900));
      await proxy.accept();
    }
  })();
  const { stdout, droppedBytes } = await command.wait();
  await refusing;
  assert.equal(stdout, Array.from({ length: 200 }, (_, index) => `line ${index + 1}\n`).join(""));
  assert.equal(droppedBytes, 0);
});

test("connections that are dead without saying so are replaced", { timeout: 20_000 }, async () => {
  const client = new Sandbank({ url: proxy.url, token: server.token, silenceMs: 400, retry: quick });
  const command = await sandbox.commands.start("for i in $(seq 100); do echo line $i; sleep 0.01; done");
  await command.wait();
  const found = await (await client.sandboxes.get(sandbox.id)).commands.get(command.id);
  proxy.cutAll();
  // Before the head of the answer, inside it, and inside the output.
  const stalls = [1, 40, 700, 1_500];
  proxy.behaviour.cutAfter = () => stalls.shift() ?? Number.POSITIVE_INFINITY;
  proxy.behaviour.stall = () => true;
  const { stdout } = await found.wait();
  assert.equal(stdout, Array.from({ length: 100 }, (_, index) => `line ${index + 1}\n`).join(""));
  assert.equal(proxy.cuts, 4);
});

test("a stream goes on from any place, and only from there", async () => {
  const command = await sandbox.commands.start("for i in 1 2 3 4 5; do echo $i; sleep 0.05; done");
  const all: OutputEvent[] = [];
  for await (const event of command) all.push(event);
  assertWhole(all);
  for (const { seq } of all.slice(0, -1)) {
    const rest: OutputEvent[] = [];
    for await (const event of command.stream({ after: seq })) rest.push(event);
    assert.deepEqual(rest, all.filter((event) => event.seq > seq || event.type === "ending"));
  }
});

test("output that nobody could keep is counted, and what comes is the end of it", async () => {
  const size = 64_000_000;
  const command = await sandbox.commands.start(`head -c ${size} /dev/zero | tr '\\0' x; printf END`);
  await until("it has ended", async () => (await command.status()).state === "ended");
  const result = await command.wait();
  assert.ok(result.droppedBytes > 0, "the server kept 64 MB");
  assert.equal(result.droppedBytes + result.stdoutBytes.length, size + 3);
  assert.ok(result.stdout.endsWith("xEND"));
});

test("a program is started once, however often the answer gets lost", async () => {
  let connections = 0;
  proxy.behaviour.cutAfter = () => ((connections += 1) <= 4 ? 1 : Number.POSITIVE_INFINITY);
  const result = await shaky.commands.run("echo run >> started; cat started");
  assert.equal(result.stdout, "run\n");
  assert.ok(proxy.count("POST ") > 1, "the start was never repeated");
});

test("a sandbox is made once, however often the answer gets lost", async () => {
  let connections = 0;
  proxy.behaviour.cutAfter = () => ((connections += 1) <= 3 ? 1 : Number.POSITIVE_INFINITY);
  const client = new Sandbank({ url: proxy.url, token: server.token, retry: quick });
  const before = (await new Sandbank(server).sandboxes.list()).length;
  await using made = await client.sandboxes.create({ network: "none" });
  assert.ok(proxy.count("POST ") > 1, "it was never repeated");
  const list = await new Sandbank(server).sandboxes.list();
  assert.equal(list.filter(({ id }) => id === made.id).length, 1);
  assert.ok(list.length <= before + 1, "other tests make none meanwhile");
});

test("input arrives once through cuts", async () => {
  const random = new Random(SEED + 2);
  const known = random.bytes(2_500_000);
  const command = await shaky.commands.start(["sh", "-c", "cat > fed"], { stdin: true });
  proxy.behaviour.cutAfter = () => (random.below(2) > 0 ? 1 : Number.POSITIVE_INFINITY);
  for (let at = 0; at < known.length; at += 500_000) await command.write(known.subarray(at, at + 500_000));
  await command.closeStdin();
  assert.equal((await command.wait()).exitCode, 0);
  assert.ok(Buffer.from(await sandbox.files.read("fed")).equals(known), `seed ${SEED}: other bytes arrived`);
});

test("what may happen only once is not repeated", async () => {
  await sandbox.files.write("once", "1");
  proxy.behaviour.cutAfter = () => 1;
  const command = await sandbox.commands.start("sleep 30");
  const found = sandbox.commands.get(command.id);
  for (const [start, attempt] of [
    ["POST /v1/sandboxes/" + sandbox.id + "/files:move", () => shaky.files.move("once", "twice")],
    ["PUT ", () => shaky.files.write("other", "x")],
    ["DELETE ", () => shaky.files.remove("other")],
    ["POST /v1/sandboxes/" + sandbox.id + ":pause", () => shaky.pause()],
    ["GET /v1/sandboxes/" + sandbox.id + "/containment", () => shaky.containment()],
  ] as [string, () => Promise<unknown>][]) {
    await assert.rejects(attempt(), ConnectionFailed);
    assert.equal(proxy.count(start), 1, `${start} was repeated`);
  }
  await sandbox.resume();
  await (await found).kill();
});

test("a file is read to its end through cuts, and a changed one is not mixed", async () => {
  const random = new Random(SEED + 3);
  const known = random.bytes(4_000_000);
  await sandbox.files.write("large", known);
  proxy.behaviour.cutAfter = () => 1_000 + random.below(900_000);
  assert.ok(Buffer.from(await shaky.files.read("large")).equals(known), `seed ${SEED}: other bytes came`);
  assert.ok(proxy.cuts > 3, `only ${proxy.cuts} cuts`);

  const reader = shaky.files.stream("large").getReader();
  await reader.read();
  await sandbox.files.write("large", random.bytes(3_999_999));
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, { code: "file_changed" });
});

test("a long wait is taken up again", async () => {
  const command = await sandbox.commands.start("sleep 1; exit 5");
  const waiting = (await shaky.commands.get(command.id)).wait();
  for (let round = 0; round < 3; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    proxy.cutAll();
  }
  assert.equal((await waiting).exitCode, 5);
});

test("a sandbox that ends while nobody is connected leaves a lost command", async () => {
  const doomed = await new Sandbank(server).sandboxes.create({ network: "none" });
  const command = await doomed.commands.start("echo here; sleep 1000");
  const client = new Sandbank({ url: proxy.url, token: server.token, retry: { attempts: 50, firstPauseMs: 5, longestPauseMs: 50 } });
  const stream = (await (await client.sandboxes.get(doomed.id)).commands.get(command.id)).stream();
  const first = (await stream.next()).value;
  assert.equal(first?.type === "output" && first.text, "here\n");
  await proxy.refuse();
  await doomed.stop();
  await proxy.accept();
  const rest: OutputEvent[] = [];
  for await (const event of stream) rest.push(event);
  const [last] = rest;
  assert.equal(rest.length, 1);
  assert.ok(last?.type === "ending" && last.ending.kind === "lost" && last.exitCode === null);
  assert.match(last.ending.describe(), /^is lost: .*stopped/);
});

test("a wait has one deadline, however often it is cut", async () => {
  const command = await sandbox.commands.start("sleep 30");
  const found = await shaky.commands.get(command.id);
  const waiting = assert.rejects(found.wait(600), Timeout);
  for (let round = 0; round < 5; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    proxy.cutAll();
  }
  await waiting;
  await command.kill();
});

test("an archive comes whole through cuts", async () => {
  const random = new Random(SEED + 5);
  const known = random.bytes(2_000_000);
  await sandbox.files.write("packed/large", known);
  proxy.behaviour.cutAfter = () => 300 + random.below(900_000);
  const archive = await new Response(shaky.files.downloadArchive("packed")).arrayBuffer();
  proxy.behaviour = {};
  await sandbox.files.uploadArchive(archive, "unpacked");
  assert.ok(Buffer.from(await sandbox.files.read("unpacked/large")).equals(known), `seed ${SEED}: other bytes came`);
  assert.ok(proxy.cuts > 1, `only ${proxy.cuts} cuts`);
});

test("events go on after cuts without a gap", async () => {
  const client = new Sandbank({ url: proxy.url, token: server.token, retry: quick });
  const random = new Random(SEED + 4);
  proxy.behaviour.cutAfter = () => 200 + random.below(1_500);
  const name = `mark-${SEED}-${Date.now()}`;
  const marks: Sandbox[] = [];
  for (let index = 0; index < 3; index += 1) marks.push(await new Sandbank(server).sandboxes.create({ key: `${name}-${index}`, network: "none" }));
  const seen: number[] = [];
  for await (const event of client.events()) {
    seen.push(event.seq);
    if (event.kind === "sandbox.running" && event.sandboxId === marks.at(-1)?.id) break;
  }
  assert.deepEqual(seen, seen.map((_, index) => (seen[0] ?? 0) + index));
  for (const mark of marks) await mark.stop();
});

test("a stream gives up when the server stays away", async () => {
  const command = await sandbox.commands.start("sleep 30");
  const client = new Sandbank({ url: proxy.url, token: server.token, retry: { attempts: 3, firstPauseMs: 5, longestPauseMs: 20 } });
  const found = await (await client.sandboxes.get(sandbox.id)).commands.get(command.id);
  await proxy.refuse();
  await assert.rejects(found.wait(), ConnectionFailed);
  await proxy.accept();
  await command.kill();
});

test("a stream goes on when the server is killed and started again", { skip: SERVER_PROGRAM ? false : "skipped: SANDBANK_BIN names no server" }, async () => {
  const own = await OwnServer.start();
  try {
    const client = new Sandbank({ url: own.url, token: own.token, retry: { attempts: 60 } });
    const machine = await client.sandboxes.create({ network: "none" });
    const command = await machine.commands.start("for i in $(seq 400); do echo line $i; sleep 0.01; done");
    let lines = 0;
    const reading = (async () => {
      let text = "";
      for await (const event of command) {
        if (event.type !== "output") continue;
        text += event.text;
        lines = text.split("\n").length;
      }
      return text;
    })();
    await until("some output came", () => lines > 20);
    await own.kill("SIGKILL");
    await own.start();
    assert.equal(await reading, Array.from({ length: 400 }, (_, index) => `line ${index + 1}\n`).join(""));
  } finally {
    await own.close();
  }
});
