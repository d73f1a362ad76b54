// Finding the server of this machine, and sending its token nowhere else.

import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SandbankError, Unauthorized } from "sandbank";
import { connect } from "sandbank/node";
import { CutProxy } from "./cut_proxy.js";
import { OwnServer, SERVER_PROGRAM } from "./server.js";

const skip = SERVER_PROGRAM ? false : "skipped: SANDBANK_BIN names no server";
let own: OwnServer;

before(async () => {
  delete process.env.SANDBANK_URL;
  delete process.env.SANDBANK_TOKEN;
  if (!skip) own = await OwnServer.start();
});
after(() => own?.close());

test("the server that holds the data directory is found with its token", { skip }, async () => {
  assert.deepEqual(await (await connect({ dataDir: own.dataDir })).sandboxes.list(), []);
  assert.deepEqual(await (await connect({ dataDir: own.dataDir, url: own.url })).sandboxes.list(), []);
});

test("the token is sent to no other server", { skip }, async () => {
  const proxy = await CutProxy.to(own.url);
  await assert.rejects((await connect({ dataDir: own.dataDir, url: proxy.url })).sandboxes.list(), Unauthorized);
  assert.equal(proxy.count("uthorization"), 0);
  await proxy.refuse();
  const copy = mkdtempSync(join(tmpdir(), "sandbank-sdk-"));
  for (const name of ["lock", "token"]) cpSync(join(own.dataDir, name), join(copy, name));
  await assert.rejects((await connect({ dataDir: copy, url: own.url })).sandboxes.list(), Unauthorized, "nobody holds it");
  rmSync(copy, { recursive: true });
});

test("a token that others can read is refused", { skip }, async () => {
  const file = join(own.dataDir, "token");
  chmodSync(file, 0o644);
  await assert.rejects(connect({ dataDir: own.dataDir }), (error) => error instanceof SandbankError && error.code === "token_file_unsafe");
  chmodSync(file, 0o600);
  if (process.geteuid?.() === 0) {
    chownSync(file, 65_534, 0);
    await assert.rejects(connect({ dataDir: own.dataDir }), /belongs to another user/);
    chownSync(file, 0, 0);
  }
});

test("the directory for data that a user has chosen is looked into", { skip }, async () => {
  const home = mkdtempSync(join(tmpdir(), "sandbank-sdk-"));
  symlinkSync(own.dataDir, join(home, "sandbank"));
  const { geteuid } = process;
  process.env.XDG_DATA_HOME = home;
  // Root has a directory of its own; as somebody else the token there is a stranger's.
  process.geteuid = () => 12_345;
  try {
    await assert.rejects(connect(), /belongs to another user/);
  } finally {
    if (geteuid) process.geteuid = geteuid;
    delete process.env.XDG_DATA_HOME;
    rmSync(home, { recursive: true });
  }
});

test("without a token it goes on without one", { skip }, async () => {
  const [file, aside] = [join(own.dataDir, "token"), join(own.dataDir, "token.aside")];
  renameSync(file, aside);
  await assert.rejects((await connect({ dataDir: own.dataDir })).sandboxes.list(), Unauthorized);
  renameSync(aside, file);
  assert.deepEqual(await (await connect({ dataDir: own.dataDir })).sandboxes.list(), []);
});

test("a name for this machine is dialled as the address that the server announced", { skip }, async () => {
  const asked: string[] = [];
  const watching: typeof fetch = (input, init) => {
    asked.push(String(input));
    return fetch(input, init);
  };
  const { port } = new URL(own.url);
  await (await connect({ dataDir: own.dataDir, url: `http://localhost:${port}`, fetch: watching })).sandboxes.list();
  assert.deepEqual(asked, [`${own.url}/v1/sandboxes`]);
  await assert.rejects((await connect({ dataDir: own.dataDir, url: `http://127.0.0.2:${port}`, retry: { attempts: 1 } })).sandboxes.list());
  let shown: string | null = "nothing";
  const listening: typeof fetch = async (_, init) => {
    shown = new Headers(init?.headers).get("authorization");
    return new Response("{}");
  };
  for (const url of [`http://127.0.0.2:${port}`, `http://[::1]:${port}`, `http://localhost:1`, `http://localhost.example:${port}`]) {
    await (await connect({ dataDir: own.dataDir, url, fetch: listening })).health();
    assert.equal(shown, null, url);
  }
  await (await connect({ dataDir: own.dataDir, fetch: listening })).health();
  assert.equal(shown, `Bearer ${own.token}`);
});
