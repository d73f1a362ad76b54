// Every piece of TypeScript in the README compiles as it stands, under strict rules, and runs.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sandbankTools } from "@sandbank/ai-sdk";
import { VERSION } from "./version.js";
import { ScriptedModel } from "./scripted_model.js";

const project = fileURLToPath(new URL("..", import.meta.url));
const pieces = [...readFileSync(`${project}/README.md`, "utf8").matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code ?? "");

test("the README's code compiles and runs", async () => {
  const [chat = "", ...withBashTool] = pieces;
  assert.ok(chat.includes("sandbankTools(") && withBashTool.length === 1);
  const place = `${project}/readme`;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  // There is no bash-tool for version 5.
  const run = VERSION < 6 ? [chat] : [chat, ...withBashTool];
  const names = run.map((_, index) => `${place}/block${index}.ts`);
  run.forEach((code, index) => writeFileSync(names[index] ?? "", code));
  const rules = ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--types", "node", "--lib", "es2023,dom,dom.iterable,esnext.disposable"];
  execFileSync(process.execPath, [`${project}/node_modules/typescript/bin/tsc`, ...rules, ...names], { stdio: "pipe", cwd: project });

  await using model = await ScriptedModel.start([{ tool: "bash", input: { command: "echo hello" } }], "It says hello.");
  const env = { ...process.env, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "none" };
  const shown = await Promise.all(
    names.map((name) => promisify(execFile)(process.execPath, [name.replace(/ts$/, "js")], { env, cwd: project, timeout: 60_000 })),
  );
  assert.match(shown[0]?.stdout ?? "", /^-1 \n(.*\n)*0 hello\n\n(.*\n)*It says hello\.$/);
  if (shown[1]) assert.equal(shown[1].stdout, "[ 'bash', 'readFile', 'writeFile' ]\n");
  await (await sandbankTools({ session: "chat:42", prewarm: false })).reset();
});
