// The AI SDK's `bash-tool` on a Sandbank sandbox: the model gets its tools bash, readFile and writeFile.
//
//     OPENAI_API_KEY=… npx tsx ai_sdk_bash_tool.ts "Which of these files is the longest?"

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { bashToolSandbox } from "@sandbank/ai-sdk/bash-tool";
import { stepCountIs, streamText } from "ai";
import { createBashTool } from "bash-tool";
import { connect } from "sandbank/node";

const TASK = "Fix the bug in sum.py, run it to be sure, and tell me what it prints.";
const FILES = { "sum.py": "print(sum(range(1, 100)))  # the sum of 1 to 100, with 100\n" };

const provider = createOpenAICompatible({
  name: "openai",
  baseURL: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
  apiKey: process.env.OPENAI_API_KEY,
});

const client = await connect();
await using sandbox = await client.sandboxes.create();
console.log(`sandbox ${sandbox.id}`);

const { tools } = await createBashTool({ sandbox: bashToolSandbox(sandbox), destination: "/vercel/sandbox/workspace", files: FILES });
const { fullStream } = streamText({
  model: provider(process.env.OPENAI_MODEL ?? "gpt-5-mini"),
  tools,
  prompt: process.argv[2] ?? TASK,
  stopWhen: stepCountIs(20),
});
for await (const part of fullStream) {
  if (part.type === "text-delta") process.stdout.write(part.text);
  if (part.type === "tool-call") console.log(part.toolName, part.input);
  if (part.type === "tool-result") console.log(part.output);
  if (part.type === "tool-error") console.log(String(part.error));
  if (part.type === "error") throw part.error;
}
console.log();
