// What a browser gets: the parts of a message, from which it draws the card of a tool.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readUIMessageStream, stepCountIs, streamText, type InferUITools, type UIMessage } from "ai";
import { RUNNING, type SandbankTools } from "@sandbank/ai-sdk";
import { conversation } from "./conversation.js";
import { ScriptedModel } from "./scripted_model.js";

type Message = UIMessage<never, never, InferUITools<SandbankTools["tools"]>>;

test("a browser sees the command run, grow and end", async () => {
  await using chat = await conversation();
  const command = "for i in 1 2 3 4; do echo line $i; sleep 0.25; done; echo end >&2";
  await using model = await ScriptedModel.start([{ tool: "bash", input: { command } }], "Done.");
  const result = streamText({ model: model.openai, tools: chat.tools, stopWhen: stepCountIs(5), prompt: "x" });
  const states: string[] = [];
  const shown: { exitCode: number; stdout: string; stderr: string }[] = [];
  for await (const message of readUIMessageStream<Message>({ stream: result.toUIMessageStream<Message>() })) {
    for (const part of message.parts) {
      if (part.type !== "tool-bash") continue;
      states.push(part.state);
      if (part.state === "output-available") shown.push({ ...part.output });
    }
  }
  assert.ok(states.includes("input-available"), states.join());
  assert.deepEqual([shown[0]?.exitCode, shown[0]?.stdout], [RUNNING, ""]);
  const growing = new Set(shown.filter(({ exitCode }) => exitCode === RUNNING).map(({ stdout }) => stdout));
  assert.ok(growing.size >= 3, [...growing].join("|"));
  const { exitCode, stdout, stderr } = shown.at(-1) ?? {};
  assert.deepEqual({ exitCode, stdout, stderr }, { exitCode: 0, stdout: "line 1\nline 2\nline 3\nline 4\n", stderr: "end\n" });
});
