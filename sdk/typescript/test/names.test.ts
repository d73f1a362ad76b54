// The table of both clients, `sdk/README.md`, names nothing that is not there.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Sandbank } from "sandbank";
import { SandboxClient } from "sandbank/sessions";

const TABLE = readFileSync(new URL("../TABLE.md", import.meta.url), "utf8");
const cells = [...TABLE.matchAll(/^\| `.*?\| (`.*?) \|.*\|$/gm)].map(([, cell]) => cell ?? "");
const names = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ""));

const LOG = '{"stream":"control","type":"ending","ending":{"kind":"exited","code":0},"seq":0}\n';

/** A server that says yes to everything. */
const fetch = async (input: string | URL | Request) => {
  if (String(input).includes("/logs")) return new Response(LOG);
  return Response.json({ sandboxId: "s", created: true, commandId: "c", attached: false, id: "s", shell: { cwd: "/", restarted: false } });
};

test("every name of the table exists", async () => {
  const client = new Sandbank({ url: "http://x", token: "t", fetch });
  const sandbox = await client.sandboxes.create();
  const sessions = new SandboxClient({ baseUrl: "http://x", apiKey: "k", fetch });
  const result = await sandbox.commands.run("x");
  const roots: Record<string, unknown> = {
    client,
    sandbox,
    command: await sandbox.commands.start("x"),
    shell: sandbox.shell(),
    terminal: await sandbox.terminal(),
    result,
    shellResult: await sandbox.shell().run("x"),
    ending: result.ending,
    sessions,
    session: await sessions.createSession(),
  };
  assert.ok(cells.length > 30 && names.includes("sandbox.commands.run") && names.includes("session.execStream"));
  for (const name of names) {
    let found: unknown = roots;
    for (const part of name.split(".")) {
      assert.ok(part in Object(found), `${name}: there is no ${part}`);
      found = (found as Record<string, unknown>)[part];
    }
  }
});
