// Where there are no tools, and why. A chat goes on without them; only a caller's slip is thrown.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { generateText } from "ai";
import { SandbankToolError, sandbankTools } from "@sandbank/ai-sdk";
import { ScriptedModel } from "./scripted_model.js";
import { theServer, type OwnServer } from "./server.js";
import { toolServer } from "./tool_server.js";

const ADMIN_TOKEN = "0123456789abcdef0123456789abcdef";
const session = "chat:1";

async function codes(server: OwnServer, ...tokens: string[]): Promise<(string | undefined)[]> {
  const found: (string | undefined)[] = [];
  try {
    for (const token of tokens) {
      const { tools, enabled, reason, code } = await sandbankTools({ session, baseUrl: server.url, token, prewarm: false });
      assert.equal(Object.keys(tools).length, enabled ? 4 : 0);
      assert.equal(typeof reason, enabled ? "undefined" : "string");
      assert.equal(enabled, code === undefined);
      found.push(code);
    }
  } finally {
    await server.close();
  }
  return found;
}

test("a server whose tools are off says so, and why", async () => {
  const server = await toolServer("", false);
  assert.deepEqual(await codes(server, server.token), ["tools_disabled"]);
});

test("a server whose switch is off says so", async () => {
  const server = await toolServer("", true, false);
  assert.deepEqual(await codes(server, server.token), ["tools_switched_off"]);
});

test("tools for the network need the token, and nothing else does for it", async () => {
  process.env.REMCOCHAT_ADMIN_TOKEN = ADMIN_TOKEN;
  const server = await toolServer("access = 'lan'");
  delete process.env.REMCOCHAT_ADMIN_TOKEN;
  const [none, wrong, right, own] = await codes(server, "", "wrong", ADMIN_TOKEN, server.token);
  assert.deepEqual([right, own], [undefined, undefined]);
  assert.ok(none !== undefined && wrong !== undefined, `${none} ${wrong}`);
});

test("tools of this machine need no token here", async () => {
  const { enabled, reason } = await sandbankTools({ session, token: "", prewarm: false });
  assert.ok(enabled, reason);
});

test("a chat goes on where nobody listens", async () => {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const { tools, enabled, code, reason } = await sandbankTools({ session, baseUrl: `http://127.0.0.1:${port}` });
  assert.deepEqual([enabled, code], [false, "no_server"]);
  assert.match(reason ?? "", /start it with `sandbank serve`/);
  await using model = await ScriptedModel.start("Hello.");
  const { text } = await generateText({ model: model.openai, tools, prompt: "Hello?" });
  assert.equal(text, "Hello.");
});

test("a chat does not wait for a server that never answers", async () => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const { enabled, code } = await sandbankTools({ session, baseUrl: `http://127.0.0.1:${port}` });
  assert.deepEqual([enabled, code], [false, "timeout"]);
  silent.closeAllConnections();
  silent.close();
});

test("a server that is none of ours is told apart", async () => {
  const { url } = theServer();
  const { enabled, code } = await sandbankTools({ session, baseUrl: `${url}/elsewhere` });
  assert.deepEqual([enabled, code], [false, "route_not_found"]);
});

test("a token is not sent where another server points", async () => {
  const sent: string[] = [];
  const pointing: typeof fetch = (url, init) => {
    sent.push(String(url));
    assert.equal(init?.redirect, "error");
    return Promise.reject(new TypeError("fetch failed", { cause: new Error("unexpected redirect") }));
  };
  const { code } = await sandbankTools({ session, fetch: pointing, token: "secret" });
  assert.equal(code, "connection_failed");
  assert.equal(sent.length, 1);
});

test("what the caller got wrong is thrown", async () => {
  const is = (code: string) => (error: unknown) => error instanceof SandbankToolError && error.code === code;
  await assert.rejects(sandbankTools({ session: "  " }), is("bad_session"));
  await assert.rejects(sandbankTools({ session: "a\nb" }), is("bad_session"));
  await assert.rejects(sandbankTools({ session: "x".repeat(201) }), is("invalid_input"));
  await assert.rejects(sandbankTools({ session, baseUrl: "ftp://here" }), is("bad_url"));
});
