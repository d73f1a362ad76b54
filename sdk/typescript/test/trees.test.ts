// Trees, searches, changes and repositories.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { BadRequest, Conflict, NotFound, Sandbank, type Sandbox, type WatchEvent } from "sandbank";
import { CutProxy } from "./cut_proxy.js";
import { theServer } from "./server.js";

const server = theServer();
const client = new Sandbank(server);
const author = { name: "A. Writer", email: "writer@example.org" };
let sandbox: Sandbox;

beforeEach(async () => {
  sandbox = await client.sandboxes.create({ network: "none" });
  await sandbox.files.write("src/main.rs", "first\nlet wanted = 1;\nlast wanted wanted\n", { mode: 0o644 });
  await sandbox.files.write("src/deep/notes.txt", "Wanted, with a capital\n");
  await sandbox.files.write(".hidden", "wanted\n");
  await sandbox.files.write("build/out", "wanted\n");
  await sandbox.files.write(".ignore", "build/\n");
});
afterEach(() => sandbox.stop());

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

test("a tree is told whole or says that it is not", async () => {
  const tree = await sandbox.files.tree(".", { sort: true });
  assert.deepEqual([tree.length, tree.truncated, tree.reason], [8, false, null]);
  const shown = tree.map(({ path }) => path).filter((path) => !path.startsWith("."));
  assert.deepEqual(shown, ["build", "src", "build/out", "src/deep", "src/main.rs", "src/deep/notes.txt"]);
  const main = (await sandbox.files.tree("src", { stat: true })).find(({ path }) => path === "src/main.rs");
  assert.deepEqual([main?.kind, main?.size, main?.mode], ["file", 41, 0o644]);
  const cut = await sandbox.files.tree(".", { nodes: 2 });
  assert.deepEqual([cut.length, cut.truncated, cut.reason], [2, true, "nodes"]);
  const level = await sandbox.files.tree("src", { hidden: false, depth: 1, sort: true });
  assert.deepEqual(level.map(({ path }) => path), ["src/deep", "src/main.rs"]);
  await assert.rejects(sandbox.files.tree("missing"), NotFound);
});

test("trees are copied and permissions set", async () => {
  const { files } = sandbox;
  assert.equal((await files.copy("src", "copied")).kind, "directory");
  assert.match(await files.readText("copied/main.rs"), /^first/);
  await assert.rejects(files.copy("src/main.rs", "copied/main.rs"), Conflict);
  assert.equal((await files.copy(".hidden", "copied/main.rs", { overwrite: true })).size, 7);
  assert.equal((await files.chmod("copied/main.rs", 0o600)).mode, 0o600);
  await files.chmod("copied", 0o700, { recursive: true });
  assert.equal((await files.stat("copied/deep/notes.txt")).mode, 0o700);
});

test("names and text are found with their places", async () => {
  const { files } = sandbox;
  const [main, namesEnd, ...nothing] = await all(files.searchNames("main"));
  assert.deepEqual([main, nothing], [{ type: "entry", path: "src/main.rs", kind: "file" }, []]);
  assert.ok(namesEnd?.type === "end" && namesEnd.matches === 1 && !namesEnd.truncated);
  const globbed = await all(files.searchNames("*.txt", { kind: "glob" }));
  assert.deepEqual(globbed.map((one) => one.type !== "end" && one.path), ["src/deep/notes.txt", false]);

  const lines = await all(files.searchText("wanted", { sort: "path" }));
  const places = lines.flatMap((one) => (one.type === "end" ? [] : [[one.type, one.path, one.line, one.ranges]]));
  assert.deepEqual(places, [
    ["match", "src/main.rs", 2, [[4, 10]]],
    ["match", "src/main.rs", 3, [[5, 11], [12, 18]]],
  ]);
  const end = lines.at(-1);
  assert.ok(end?.type === "end" && end.matches === 2 && end.filesMatched === 1 && !end.truncated);
  const context = await all(files.searchText("= 1", { literal: true, before: 1 }));
  assert.deepEqual(context.map(({ type }) => type), ["context", "match", "end"]);
  const everything = await all(files.searchText("WANTED", { case: "insensitive", hidden: true, ignored: true }));
  const paths = new Set(everything.flatMap((one) => (one.type === "end" ? [] : [one.path])));
  assert.deepEqual([...paths].sort(), [".hidden", "build/out", "src/deep/notes.txt", "src/main.rs"]);
  const last = (await all(files.searchText("wanted", { limit: 1 }))).at(-1);
  assert.ok(last?.type === "end" && last.truncated && last.reason === "limit");
  const refused = (error: unknown) => error instanceof BadRequest && /literal/.test(error.hint ?? "");
  await assert.rejects(all(files.searchText("wanted(")), refused);
});

test("changes are told, also to who comes back, and the end too", async () => {
  const events = sandbox.files.watch("src");
  const ready = (await events.next()).value;
  assert.equal(ready?.kind, "ready");
  await sandbox.files.write("src/new", "1");
  await sandbox.files.move("src/new", "src/newer");
  const moved = async (items: AsyncIterator<WatchEvent, void>): Promise<WatchEvent | undefined> => {
    for (;;) {
      const { value, done } = await items.next();
      if (done || (value as WatchEvent).path === "src/newer") return value as WatchEvent | undefined;
    }
  };
  const seen = await moved(events);
  assert.deepEqual([seen?.kind, seen?.from, seen?.isDir], ["moved", "src/new", false]);
  const again = sandbox.files.watch("src", { after: ready?.seq ?? -1 });
  assert.equal((await moved(again))?.seq, seen?.seq);
  await again.return();
  await sandbox.stop();
  const rest = await all(events);
  assert.equal(rest.at(-1)?.kind, "end");
});

test("a watch that is cut goes on without a gap", async () => {
  const proxy = await CutProxy.to(server.url);
  const retry = { attempts: 50, firstPauseMs: 5, longestPauseMs: 50 };
  const shaky = await new Sandbank({ url: proxy.url, token: server.token, retry }).sandboxes.get(sandbox.id);
  proxy.behaviour.cutAfter = () => 900;
  const events = shaky.files.watch("src", { recursive: false });
  assert.equal((await events.next()).value?.kind, "ready");
  const names = Array.from({ length: 60 }, (_, number) => `src/${String(number).padStart(3, "0")}`);
  for (const name of names) await sandbox.files.mkdir(name);
  const seen: WatchEvent[] = [];
  for await (const event of events) {
    seen.push(event);
    if (event.path === names.at(-1)) break;
  }
  await proxy.refuse();
  assert.deepEqual(seen.map(({ kind, path }) => [kind, path]), names.map((name) => ["created", name]));
  assert.ok(proxy.cuts > 0, "it was never cut");
});

test("a repository is looked at and changed", async () => {
  const { git, files } = sandbox;
  const nothing = await git.status();
  assert.deepEqual([nothing.isRepository, nothing.entries], [false, []]);
  await sandbox.commands.run("git init -q -b main . && rm .ignore", { check: true });
  await files.write("a", "one\n");
  assert.ok((await git.status()).entries.some(({ path, worktree }) => path === "a" && worktree === "untracked"));
  await git.stage(["a"]);
  assert.ok((await git.status()).entries.some(({ path, index }) => path === "a" && index === "added"));
  await git.unstage(["a"]);
  await git.stage([], { all: true });
  const first = await git.commit("the first", { author });
  const status = await git.status();
  assert.deepEqual([status.head.branch, status.head.commit, status.entries], ["main", first, []]);
  await files.write("a", "two\n");
  assert.match((await git.diff("a")).diff, /\+two/);
  assert.equal((await git.diff(undefined, { staged: true })).diff, "");
  assert.match((await git.diff("a", { from: "HEAD" })).diff, /\+two/);
  const shown = await git.show("a");
  assert.deepEqual([shown.found, shown.content, shown.commit], [true, "one\n", first]);
  assert.equal((await git.show("missing")).found, false);
  await git.checkout("other", { create: true });
  await git.stage(["a"]);
  const second = await git.commit("the second", { author });
  const log = await git.log(undefined, { limit: 1 });
  assert.deepEqual(log.commits.map(({ id, parents, author }) => ({ id, parents, author })), [{ id: second, parents: [first], author }]);
  assert.deepEqual([log.more, log.start], [true, second]);
  const branches = (await git.branches()).branches.map(({ name, current, commit }) => [name, current, commit]);
  assert.deepEqual(branches.sort(), [["main", false, first], ["other", true, second]]);
  await assert.rejects(git.commit("nothing to commit", { author }), Conflict);
});
