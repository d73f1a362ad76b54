// Where nobody listens, that is told at once; a server that goes away for a while is waited for.

import assert from "node:assert/strict";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { ConnectionFailed, Sandbank, SandbankError } from "sandbank";
import { SandboxClient } from "sandbank/sessions";
import { OwnServer, SERVER_PROGRAM, until } from "./server.js";

const skip = SERVER_PROGRAM ? false : "skipped: SANDBANK_BIN names no server";
/** Tries as often as the usual one, without its pauses. */
const HASTY = { firstPauseMs: 1, longestPauseMs: 1 };
const ATTEMPTS = 8;

/** The real network, counted. */
function counting() {
  const seen = { sent: 0, failed: 0 };
  const fetch: typeof globalThis.fetch = async (input, init) => {
    seen.sent += 1;
    try {
      return await globalThis.fetch(input, init);
    } catch (error) {
      seen.failed += 1;
      throw error;
    }
  };
  return { seen, fetch };
}

/** A port at which nobody listens. */
async function nobody(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

function tells(url: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof ConnectionFailed);
    assert.equal(error.code, "no_server");
    assert.ok(error.message.startsWith(`no server at ${url}: start it with \`sandbank serve\`, or set SANDBANK_URL`), error.message);
    return true;
  };
}

test("a first connection that is refused is told at once", async () => {
  const port = await nobody();
  for (const host of ["127.0.0.1", "localhost"]) {
    const { seen, fetch } = counting();
    const url = `http://${host}:${port}`;
    const client = new Sandbank({ url, token: "t", fetch, retry: HASTY });
    await assert.rejects(client.health(), tells(url));
    await assert.rejects(client.sandboxes.create(), tells(url));
    await assert.rejects(client.events().next(), tells(url));
    assert.equal(seen.sent, 3);
    await assert.rejects(new SandboxClient({ baseUrl: url, apiKey: "k" }).createSession(), tells(url));
  }
});

test("a refusal is known in the words of every runtime", async () => {
  const refusals = [
    Object.assign(new Error("Unable to connect"), { code: "ConnectionRefused" }),
    new TypeError("error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)"),
    new TypeError("fetch failed", { cause: Object.assign(new AggregateError([refused(), refused()]), { code: "ECONNREFUSED" }) }),
  ];
  for (const refusal of refusals) assert.deepEqual(await triesOf(refusal), { sent: 1, code: "no_server" });
  const others = [
    new TypeError("Failed to fetch"),
    new TypeError("fetch failed", { cause: Object.assign(new AggregateError([refused(), new Error("timed out")]), { code: "ECONNREFUSED" }) }),
  ];
  for (const other of others) assert.deepEqual(await triesOf(other), { sent: ATTEMPTS, code: "connection_failed" });
});

function refused(): Error {
  return Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
}

async function triesOf(failure: Error): Promise<{ sent: number; code: string }> {
  let sent = 0;
  const fetch = async () => {
    sent += 1;
    throw failure;
  };
  const client = new Sandbank({ url: "http://far.example:8080", fetch, retry: HASTY });
  const error: unknown = await client.health().catch((error: unknown) => error);
  assert.ok(error instanceof SandbankError && error.message.includes("http://far.example:8080"));
  return { sent, code: error.code };
}

test("a server that was there is waited for, and one that stays away is given up and named", { skip }, async () => {
  const own = await OwnServer.start();
  try {
    const { seen, fetch } = counting();
    const client = new Sandbank({ url: own.url, token: own.token, fetch, retry: { attempts: 600, longestPauseMs: 100 } });
    const machine = await client.sandboxes.create({ network: "none" });
    const command = await machine.commands.start("echo before; sleep 1; echo after");
    const events = command.stream();
    const first = await events.next();
    assert.ok(!first.done && first.value.type === "output" && first.value.text === "before\n");
    const hasty = counting();
    const impatient = new Sandbank({ url: own.url, fetch: hasty.fetch, retry: HASTY });
    await impatient.health();

    await own.kill("SIGKILL");
    await assert.rejects(impatient.health(), (error) => error instanceof ConnectionFailed && error.code === "connection_failed" && error.message.includes(own.url));
    assert.ok(hasty.seen.sent >= 1 + ATTEMPTS);
    const health = client.health();
    await until("somebody was refused", () => seen.failed > 0);
    await own.start();
    assert.equal((await health).ok, true);
    let text = "";
    for await (const event of events) if (event.type === "output") text += event.text;
    assert.equal(text, "after\n");
  } finally {
    await own.close();
  }
});
