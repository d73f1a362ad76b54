// The AI SDK's `bash-tool` on a Sandbank sandbox: the model gets its tools bash, readFile and writeFile.
//
//     OPENAI_API_KEY=… npx tsx ai_sdk_bash_tool.ts "Which of these files is the longest?"

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText } from "ai";
import { createBashTool, type Sandbox as BashToolSandbox } from "bash-tool";
import type { Sandbox } from "sandbank";
import { connect } from "sandbank/node";

const TASK = "Fix the bug in sum.py, run it to be sure, and tell me what it prints.";
const FILES = { "sum.py": "print(sum(range(1, 100)))  # the sum of 1 to 100, with 100\n" };

/** What bash-tool wants of a sandbox, in terms of ours. */
function forBashTool(sandbox: Sandbox): BashToolSandbox {
  return {
    async executeCommand(command) {
      const { stdout, stderr, exitCode, ending } = await sandbox.commands.run(command, { timeoutMs: 120_000 });
      return { stdout, stderr: `${stderr}[it ${ending.describe()}]`, exitCode: exitCode ?? -1 };
    },
    readFile: (path) => sandbox.files.readText(path),
    async writeFiles(files) {
      for (const { path, content } of files) await sandbox.files.write(path, content);
    },
  };
}

const provider = createOpenAICompatible({
  name: "openai",
  baseURL: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
  apiKey: process.env.OPENAI_API_KEY,
});

const client = await connect();
await using sandbox = await client.sandboxes.create();
console.log(`sandbox ${sandbox.id}`);

const { tools } = await createBashTool({ sandbox: forBashTool(sandbox), files: FILES });
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
