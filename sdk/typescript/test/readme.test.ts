// Every piece of code in the README compiles as it stands, under strict rules, and runs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { theServer } from "./server.js";

theServer();
const project = fileURLToPath(new URL("..", import.meta.url));
const blocks = [...readFileSync(`${project}/README.md`, "utf8").matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];

test("the README's code compiles and runs", { timeout: 120_000 }, async (context) => {
  assert.ok(blocks.length >= 4 && blocks.every(([, language]) => language === "ts"));
  const place = `${project}/readme`;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  blocks.forEach(([, , code], index) => writeFileSync(`${place}/block${index}.ts`, code ?? ""));
  const names = blocks.map((_, index) => `${place}/block${index}.ts`);
  const rules = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable,esnext.disposable"];
  // Only for `process` and `console`; the SDK itself needs none of Node's types.
  writeFileSync(`${place}/globals.d.ts`, "declare const process: { env: Record<string, string | undefined> };\n");
  execFileSync(process.execPath, [`${project}/typescript/bin/tsc`, ...rules, ...names, `${place}/globals.d.ts`], { stdio: "pipe", cwd: project });
  for (const index of blocks.keys()) {
    await context.test(`block ${index + 1}`, () => {
      const shown = execFileSync(process.execPath, [`${place}/block${index}.js`], { encoding: "utf8", cwd: project });
      if (index === 0) assert.equal(shown, "42\n 0\n");
    });
  }
});
