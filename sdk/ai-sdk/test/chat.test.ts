// Whole conversations with a scripted model, in both protocols.

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { test } from "node:test";
import { generateText, stepCountIs, streamText } from "ai";
import { RUNNING } from "@sandbank/ai-sdk";
import { call, conversation } from "./conversation.js";
import { ScriptedModel } from "./scripted_model.js";

const stopWhen = stepCountIs(20);
const WORDS = "REMCOCHAT_BASH_E2E_OK";

for (const protocol of ["openai", "anthropic"] as const) {
  test(`a model of ${protocol} runs a command, whose output is streamed`, async () => {
    const secret = randomUUID();
    const command = `echo ${WORDS}; until test -e go; do sleep 0.05; done; printf %s ${secret} | sha256sum; exit 3`;
    await using model = await ScriptedModel.start([{ tool: "bash", input: { command } }], "It ran.");
    await using chat = await conversation();
    const result = streamText({ model: model[protocol], tools: chat.tools, stopWhen, prompt: `Run: ${WORDS}` });
    const codes: number[] = [];
    let text = "";
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") text += part.text;
      if (part.type !== "tool-result" || part.dynamic || part.toolName !== "bash") continue;
      assert.equal(part.input.command, command);
      codes.push(part.output.exitCode);
      if (part.preliminary !== true) assert.match(part.output.stdout, new RegExp(createHash("sha256").update(secret).digest("hex")));
      // Only who sees what was printed so far lets the command go on.
      else if (part.output.stdout === `${WORDS}\n`) await call(chat, "writeFile", { path: "go", content: "" });
    }
    assert.equal(text, "It ran.");
    assert.ok(codes.length >= 3 && codes[0] === RUNNING && codes.at(-1) === 3, codes.join());

    const [first, second] = model.asked;
    assert.ok(first?.stream);
    assert.deepEqual(first.tools.map(({ name }) => name).sort(), ["bash", "readFile", "sandboxUrl", "writeFile"]);
    const told = JSON.parse(second?.results[0] ?? "");
    assert.equal(told.untrusted, true);
    assert.equal(told.exitCode, 3);
    assert.ok(told.stdout.startsWith(`${WORDS}\n`));
  });

  test(`a model of ${protocol} writes, serves and reads files`, async () => {
    const secret = randomUUID();
    const serve =
      "(python3 -m http.server 3000 || busybox httpd -f -p 3000) >/dev/null 2>&1 & until (: </dev/tcp/127.0.0.1/3000) 2>/dev/null; do sleep 0.05; done";
    await using model = await ScriptedModel.start(
      [{ tool: "writeFile", input: { path: "site/index.html", content: secret } }],
      [
        { tool: "readFile", input: { path: "site/index.html" } },
        { tool: "readFile", input: { path: "missing" } },
      ],
      [{ tool: "bash", input: { command: `cd site; ${serve}` } }],
      [{ tool: "sandboxUrl", input: { port: 3000 } }],
      "Look at it.",
    );
    await using chat = await conversation();
    const { text } = await generateText({ model: model[protocol], tools: chat.tools, stopWhen, prompt: "Make a page." });
    assert.equal(text, "Look at it.");
    const [written, read, missing, served, url] = model.asked.at(-1)?.results ?? [];
    assert.deepEqual(JSON.parse(written ?? ""), { success: true });
    assert.deepEqual(JSON.parse(read ?? ""), { untrusted: true, content: secret });
    assert.match(missing ?? "", /missing/);
    assert.equal(JSON.parse(served ?? "").exitCode, 0);
    const page = await fetch(JSON.parse(url ?? "").url);
    assert.equal(await page.text(), secret);
  });
}
