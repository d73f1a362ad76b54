// Finding the server of this machine, and sending its token nowhere else.

import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Unauthorized } from "sandbank";
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
  await assert.rejects(connect({ dataDir: own.dataDir }), /can be read by others/);
  chmodSync(file, 0o600);
});
