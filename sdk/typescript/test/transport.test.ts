// What a client makes of answers that no server should give. The network is a function here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BadRequest, ConnectionFailed, Gone, NotFound, Sandbank, SandbankError, Timeout, TooMany, Unavailable } from "sandbank";

/** A client whose every request is answered here. */
function clientOf(answer: () => Response | Promise<Response>, options: { timeoutMs?: number; attempts?: number } = {}) {
  const seen = { requests: 0 };
  const fetch = async () => {
    seen.requests += 1;
    return answer();
  };
  const { timeoutMs = 5_000, attempts = 3 } = options;
  const retry = { attempts, firstPauseMs: 1, longestPauseMs: 2 };
  return { client: new Sandbank({ url: "http://x", token: "t", fetch, timeoutMs, retry }), seen };
}

test("an answer that is no JSON is an error at once, with and without a limit", async () => {
  for (const timeoutMs of [0, 5_000]) {
    const { client, seen } = clientOf(() => new Response("<html>"), { timeoutMs });
    await assert.rejects(client.health(), (error) => error instanceof SandbankError && error.code === "bad_answer" && !error.retryable);
    assert.equal(seen.requests, 1);
  }
});

test("an answer that breaks off is asked for again, and not for ever", async () => {
  const broken = () => new ReadableStream({ start: (controller) => controller.error(new Error("cut")) });
  for (const timeoutMs of [0, 5_000]) {
    for (const body of [broken, () => ""]) {
      const { client, seen } = clientOf(() => new Response(body()), { timeoutMs });
      await assert.rejects(client.health(), ConnectionFailed);
      assert.equal(seen.requests, 3);
    }
  }
});

test("one deadline bounds all tries", async () => {
  const busy = () => Response.json({ error: "busy", code: "busy", retryable: true }, { status: 503, headers: { "retry-after": "1" } });
  const { client, seen } = clientOf(busy, { timeoutMs: 500 });
  await assert.rejects(client.health(), Unavailable);
  assert.equal(seen.requests, 1, "a pause that is longer than what is left is not begun");
  const fetch: typeof globalThis.fetch = (_, init) => new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
  await assert.rejects(new Sandbank({ url: "http://x", fetch, timeoutMs: 50 }).health(), Timeout);
});

test("a server that asks for too long a pause is not asked again", async () => {
  const later = () => Response.json({ error: "busy", code: "limit_reached", retryable: true }, { status: 429, headers: { "retry-after": "31" } });
  const { client, seen } = clientOf(later, { timeoutMs: 600_000 });
  await assert.rejects(client.health(), (error) => error instanceof TooMany && error.retryAfterMs === 31_000);
  assert.equal(seen.requests, 1);
});

test("statuses and codes are classes, and the server's text is kept", async () => {
  const told = async (status: number, body: object): Promise<SandbankError> => {
    const { client } = clientOf(() => Response.json(body, { status }), { attempts: 1 });
    return client.health().then(() => assert.fail("no error"), (error: unknown) => error as SandbankError);
  };
  for (const [status, code, Class] of [
    [400, "bad_field", BadRequest],
    [404, "gone", Gone],
    [404, "sandbox_gone", Gone],
    [404, "sandbox_not_found", NotFound],
    [410, "closed", Gone],
    [500, "internal", SandbankError],
    [502, "runner_failed", Unavailable],
    [504, "COMMAND_TIMEOUT", Timeout],
    [507, "storage_full", Unavailable],
  ] as const) {
    const error = await told(status, { error: "a sentence", code, retryable: false });
    assert.equal(error.constructor, Class, code);
    assert.equal(error.code, code);
  }
  assert.ok((await told(404, { error: "x", code: "gone" })) instanceof NotFound, "what is gone is not found");
  const session = await told(404, { error_code: "SESSION_NOT_FOUND", message: "no session", details: { hint: "make one" } });
  assert.deepEqual([session.code, session.message, session.hint], ["SESSION_NOT_FOUND", "no session", "make one"]);
});

const RECORD = { stream: "stdout", data: "aGk=", encoding: "base64", seq: 1, timeMs: 1 };
const ENDING = { stream: "control", type: "ending", ending: { kind: "exited", code: 0 }, exitCode: 0, seq: 1 };

/** The output of a command whose log is these lines. */
async function outputOf(...lines: (object | string)[]): Promise<string> {
  const log = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  const replies = [Response.json({ sandboxId: "s", created: true }), Response.json({ commandId: "c", attached: false }), new Response(log)];
  const { client } = clientOf(() => replies.shift() ?? new Response(log), { attempts: 1 });
  return (await (await client.sandboxes.create()).commands.run("x")).stdout;
}

test("a record that is not as it should be is an error that says so", async () => {
  assert.equal(await outputOf(RECORD, { stream: "control", type: "of a newer server", seq: 1 }, { stream: "new", seq: 1 }, ENDING), "hi");
  assert.equal(await outputOf(RECORD, RECORD, ENDING), "hi", "what comes twice counts once");
  for (const bad of [
    "{]",
    "5",
    { ...RECORD, seq: "one" },
    { ...RECORD, data: 5 },
    { ...RECORD, data: "a" },
    { ...RECORD, data: "####" },
    { ...RECORD, seq: 2 },
    { stream: "control", type: "dropped", seq: 1, bytes: "many" },
    { stream: "control", type: "ending", seq: 1 },
  ]) {
    await assert.rejects(outputOf(bad, ENDING), (error) => error instanceof SandbankError && error.code === "bad_output", JSON.stringify(bad));
  }
  assert.equal(await outputOf({ stream: "control", type: "dropped", frames: 1, bytes: 9, seq: 1 }, { ...RECORD, seq: 2 }, ENDING), "hi");
});
