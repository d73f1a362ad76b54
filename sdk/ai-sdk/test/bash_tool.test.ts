// The published package `bash-tool` on a sandbox of the TypeScript SDK.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { generateText, stepCountIs } from "ai";
import { createBashTool } from "bash-tool";
import { Sandbank } from "sandbank";
import { bashToolSandbox } from "@sandbank/ai-sdk/bash-tool";
import { ScriptedModel } from "./scripted_model.js";
import { theServer, until } from "./server.js";

const client = new Sandbank(theServer());
const destination = "/vercel/sandbox/workspace";

test("a model works in a sandbox through bash-tool as it is published", async () => {
  await using sandbox = await client.sandboxes.create();
  const secret = randomUUID();
  const { tools } = await createBashTool({ sandbox: bashToolSandbox(sandbox), destination, files: { "in/a.txt": secret } });
  await using model = await ScriptedModel.start(
    [
      { tool: "readFile", input: { path: "in/a.txt" } },
      { tool: "bash", input: { command: "pwd; rev in/a.txt; echo oops >&2; exit 3" } },
    ],
    [{ tool: "writeFile", input: { path: "out/b.txt", content: "ü" } }],
    [{ tool: "bash", input: { command: "cat out/b.txt" } }],
    [{ tool: "readFile", input: { path: "missing" } }],
    "Done.",
  );
  const { text } = await generateText({ model: model.anthropic, tools, stopWhen: stepCountIs(10), prompt: "x" });
  assert.equal(text, "Done.");
  const [read, ran, written, shown, missing] = model.asked.at(-1)?.results ?? [];
  assert.deepEqual(JSON.parse(read ?? ""), { content: secret });
  const reversed = [...secret].reverse().join("");
  assert.deepEqual(JSON.parse(ran ?? ""), { stdout: `${destination}\n${reversed}`, stderr: "oops\n", exitCode: 3 });
  assert.deepEqual(JSON.parse(written ?? ""), { success: true });
  assert.deepEqual(JSON.parse(shown ?? ""), { stdout: "ü", stderr: "", exitCode: 0 });
  assert.match(missing ?? "", /missing|no such/i);
});

test("a directory is uploaded byte by byte", async () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const source = mkdtempSync(join(tmpdir(), "sandbank-ai-sdk-"));
  try {
    writeFileSync(join(source, "bytes"), bytes);
    await using sandbox = await client.sandboxes.create();
    await createBashTool({ sandbox: bashToolSandbox(sandbox), destination, uploadDirectory: { source } });
    assert.deepEqual(await sandbox.files.read("bytes"), bytes);
  } finally {
    rmSync(source, { recursive: true });
  }
});

test("a command whose time is over has 124 and says so", async () => {
  await using sandbox = await client.sandboxes.create();
  const { executeCommand } = bashToolSandbox(sandbox, { timeoutMs: 500 });
  assert.deepEqual(await executeCommand("printf begun; printf so >&2; sleep 1000"), {
    stdout: "begun",
    stderr: "so\nCommand timed out after 500ms.",
    exitCode: 124,
  });
});

test("output without end does not fill the memory", async () => {
  await using sandbox = await client.sandboxes.create();
  const { stdout, exitCode } = await bashToolSandbox(sandbox).executeCommand("yes | head -c 20000000");
  assert.equal(exitCode, 0);
  assert.ok(stdout.startsWith("y\ny\n") && stdout.length < 1.1 * 2 ** 20, String(stdout.length));
  assert.match(stdout, /\[stdout truncated: \d+ characters removed\]$/);
});

test("a sandbox that ends under a command is an error, not a result", async () => {
  const sandbox = await client.sandboxes.create();
  const adapter = bashToolSandbox(sandbox);
  const running = adapter.executeCommand("touch begun; sleep 1000");
  const failed = assert.rejects(running, /is lost/);
  await until("it has begun", () => adapter.readFile("begun").then(() => true, () => false));
  await sandbox.stop();
  await failed;
});
