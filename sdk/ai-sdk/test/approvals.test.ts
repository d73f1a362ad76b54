// Calls that wait for a person.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { RUNNING, SandbankToolError, type Approval } from "@sandbank/ai-sdk";
import { bash, call, conversation } from "./conversation.js";
import { until, type OwnServer } from "./server.js";
import { toolServer } from "./tool_server.js";

const RULES = `[[app.bash_tools.approvals.rules]]
action = "ask"
command = "touch"
[[app.bash_tools.approvals.rules]]
action = "ask"
tool = "writeFile"`;

interface Row {
  id: string;
  status: string;
  tool: string;
  digest: string;
}

async function ask(server: OwnServer, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${server.url}/api/tools/approvals${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assert.equal(response.status, 200, path);
  return response.json();
}

async function waiting(server: OwnServer, tool: string): Promise<Row | undefined> {
  const { approvals } = (await ask(server, "")) as { approvals: Row[] };
  return approvals.find((row) => row.tool === tool && row.status === "waiting");
}

async function decide(server: OwnServer, tool: string, decision: "allow" | "deny"): Promise<Row> {
  await until(`a person is asked about ${tool}`, async () => (await waiting(server, tool)) !== undefined);
  const row = await waiting(server, tool);
  assert.ok(row);
  await ask(server, `/${row.id}`, { decision, digest: row.digest });
  return row;
}

test("a command that waits for a person has an output like any other, and the question in it", async () => {
  const server = await toolServer(RULES);
  try {
    const chat = await conversation({ session: `test:${randomUUID()}`, baseUrl: server.url, token: server.token });
    const [seen, row] = await Promise.all([bash(chat, "touch made; echo done"), decide(server, "bash", "allow")]);
    const [first] = seen;
    assert.deepEqual([first?.stdout, first?.stderr, first?.exitCode], ["", "", RUNNING]);
    const { approvalId, digest, deadlineMs, rule } = first?.approval as Approval;
    assert.deepEqual([approvalId, digest], [row.id, row.digest]);
    assert.ok(deadlineMs > Date.now() && rule.includes("touch"), rule);
    assert.ok(seen.every(({ stdout, stderr, exitCode }) => typeof stdout === "string" && typeof stderr === "string" && Number.isInteger(exitCode)));
    assert.deepEqual(seen.at(-1), { stdout: "done\n", stderr: "", exitCode: 0, untrusted: true });
  } finally {
    await server.close();
  }
});

test("every tool that waits for a person has its answer's head at once", async () => {
  const server = await toolServer(RULES);
  try {
    let heads = 0;
    const counting: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      if (String(url).endsWith("/writeFile")) heads += 1;
      return response;
    };
    const chat = await conversation({ session: `test:${randomUUID()}`, baseUrl: server.url, token: server.token, fetch: counting });
    const write = call(chat, "writeFile", { path: "made", content: "x" });
    await until("its answer has begun", () => heads === 1);
    await decide(server, "writeFile", "allow");
    assert.deepEqual(await write, { success: true });
    const refused = call(chat, "writeFile", { path: "other", content: "x" });
    const denied = assert.rejects(refused, (error) => error instanceof SandbankToolError && error.code === "denied");
    await decide(server, "writeFile", "deny");
    await denied;
  } finally {
    await server.close();
  }
});
