// What goes wrong, as the AI SDK and the model behind it see it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asSchema, generateText, stepCountIs, streamText } from "ai";
import { SandbankToolError, sandbankTools } from "@sandbank/ai-sdk";
import { bash, call, conversation, printed } from "./conversation.js";
import { ScriptedModel } from "./scripted_model.js";
import { theServer, until } from "./server.js";
import { MAX_STDOUT_CHARS, TIMEOUT_MS } from "./tool_server.js";

const stopWhen = stepCountIs(5);

test("input that does not fit is told the model and never sent", async () => {
  const sent: string[] = [];
  const counting: typeof fetch = (url, init) => {
    if (init?.method === "POST") sent.push(String(init.body));
    return fetch(url, init);
  };
  await using chat = await conversation({ fetch: counting });
  await using model = await ScriptedModel.start(
    [{ tool: "bash", input: { cmd: "true" } }],
    [{ tool: "bash", input: { command: "true" } }],
    "Done.",
  );
  const { steps } = await generateText({ model: model.openai, tools: chat.tools, stopWhen, prompt: "x" });
  const errors = steps.flatMap(({ content }) => content.filter((part) => part.type === "tool-error"));
  assert.equal(errors.length, 1);
  const [wrong, right] = model.asked.at(-1)?.results ?? [];
  assert.match(wrong ?? "", /command is missing; \\*"cmd\\*" is not one of its fields/);
  assert.equal(JSON.parse(right ?? "").exitCode, 0);
  assert.deepEqual(sent, ['{"command":"true"}']);
});

test("what a tool cannot do is a tool-error with the server's words, and the chat goes on", async () => {
  await using chat = await conversation();
  await using model = await ScriptedModel.start([{ tool: "sandboxUrl", input: { port: 4000 } }], "No such port.");
  const result = streamText({ model: model.anthropic, tools: chat.tools, stopWhen, prompt: "x" });
  const errors: unknown[] = [];
  for await (const part of result.fullStream) if (part.type === "tool-error") errors.push(part.error);
  assert.equal(errors.length, 1);
  assert.ok(errors[0] instanceof SandbankToolError && errors[0].code === "invalid_input");
  assert.match(errors[0].message, /^Port 4000 is not published for this sandbox\./);
  assert.match(model.asked.at(-1)?.results[0] ?? "", /Port 4000 is not published/);
  assert.equal(await result.text, "No such port.");
});

test("an abort ends the stream and kills what the command had started", async () => {
  await using chat = await conversation();
  const command = "sleep 1000 & echo $!; wait";
  await using model = await ScriptedModel.start([{ tool: "bash", input: { command } }], "Never said.");
  const controller = new AbortController();
  const result = streamText({ model: model.openai, tools: chat.tools, stopWhen, prompt: "x", abortSignal: controller.signal });
  const lives = async (pid: string) => (await printed(chat, `kill -0 ${pid} 2>/dev/null && echo alive`)) === "alive\n";
  let pid = "";
  let last = "";
  for await (const part of result.fullStream) {
    last = part.type;
    if (part.type !== "tool-result" || part.dynamic || part.toolName !== "bash" || pid !== "") continue;
    pid = part.output.stdout.trim();
    if (pid === "") continue;
    assert.ok(await lives(pid));
    controller.abort();
  }
  assert.match(pid, /^\d+$/);
  assert.equal(last, "abort");
  assert.equal(model.asked.length, 1);
  await until("it is killed", async () => !(await lives(pid)));
});

test("who stops reading ends the command, too", async () => {
  await using chat = await conversation();
  const lives = async (pid: string) => (await printed(chat, `kill -0 ${pid} 2>/dev/null && echo alive`)) === "alive\n";
  const options = { toolCallId: "by hand", messages: [], context: undefined };
  let pid = "";
  for await (const { stdout } of chat.tools.bash.execute!({ command: "echo $$; exec sleep 1000" }, options) as AsyncIterable<{ stdout: string }>) {
    pid = stdout.trim();
    if (pid === "") continue;
    assert.ok(await lives(pid));
    break;
  }
  await until("it is killed", async () => !(await lives(pid)));
});

test("a call that is aborted before it begins fails with the caller's reason", async () => {
  await using chat = await conversation();
  const reason = new Error("no longer wanted");
  await assert.rejects(bash(chat, "true", AbortSignal.abort(reason)), reason);
});

test("a command whose time is over says so and has 124", async () => {
  await using chat = await conversation();
  const last = (await bash(chat, "echo begun; sleep 1000")).at(-1);
  assert.deepEqual(last, { stdout: "begun\n", stderr: `Command timed out after ${TIMEOUT_MS}ms.`, exitCode: 124, untrusted: true });
});

test("of long output the end is shown and what is before it is counted", async () => {
  await using chat = await conversation();
  const last = (await bash(chat, `head -c ${MAX_STDOUT_CHARS} /dev/zero | tr '\\0' a; printf bcd`)).at(-1);
  assert.equal(last?.stdout, `${"a".repeat(MAX_STDOUT_CHARS - 3)}bcd`);
  assert.equal(last.stdoutTruncatedChars, 3);
});

test("a server that is gone in the middle of a command is told as a broken connection", async () => {
  const cutting: typeof fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (!String(url).endsWith("/bash") || !response.body) return response;
    const reader = response.body.getReader();
    const first = await reader.read();
    const cut = new ReadableStream({
      start(controller) {
        controller.enqueue(first.value);
        controller.close();
        void reader.cancel();
      },
    });
    return new Response(cut, response);
  };
  await using chat = await conversation({ fetch: cutting });
  await assert.rejects(bash(chat, "sleep 1000"), (error) => error instanceof SandbankToolError && error.code === "connection_failed");
});

test("the schemas are the server's, and refuse here what it refuses there", async () => {
  const { url, token } = theServer();
  await using chat = await conversation();
  const ask = (path: string, body?: string) =>
    fetch(`${url}/api/tools${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${token}`, "x-sandbank-session": chat.session },
      ...(body === undefined ? {} : { body }),
    });
  const { tools } = (await (await ask("")).json()) as { tools: { name: keyof typeof chat.tools; inputSchema: unknown; description: string }[] };
  const inputs: unknown[] = [
    {}, [], "x", { constructor: 1 },
    { command: "" }, { command: "true" }, { command: 1 }, { command: "true", more: 1 },
    { command: `:${"é".repeat(100_000)}` }, { command: `:${"😀".repeat(20_000)}` },
    { path: "a" }, { path: "" }, { path: "p".repeat(4_097) }, { path: "a", content: "" }, { path: "a", content: null },
    { port: 3000 }, { port: 0 }, { port: 65_536 }, { port: 1.5 }, { port: "3000" },
  ];
  let refusals = 0;
  for (const { name, inputSchema, description } of tools) {
    const ours = chat.tools[name];
    const schema = asSchema(ours.inputSchema as Parameters<typeof asSchema>[0]);
    assert.deepEqual(await schema.jsonSchema, inputSchema);
    assert.equal(ours.description, description);
    for (const input of inputs) {
      const here = await schema.validate?.(input);
      const answer = await ask(`/${name}`, JSON.stringify(input));
      const { error } = (await answer.json()) as { error?: string };
      const refused = answer.status === 400 && /^the (input of|request body must be)/.test(error ?? "");
      assert.equal(here?.success, !refused, `${name}(${JSON.stringify(input).slice(0, 60)}): ${error}`);
      refusals += Number(refused);
    }
  }
  assert.ok(refusals > 0 && refusals < tools.length * inputs.length);
});

test("a tool that the server has not is no silent gap", async () => {
  await assert.rejects(sandbankTools({ session: "x", tools: ["fly" as "bash"] }), /offers no tool fly/);
  const { tools } = await sandbankTools({ session: "x", tools: ["readFile"], prewarm: false });
  assert.deepEqual(Object.keys(tools), ["readFile"]);
});

test("a file that is not there is an error with the server's code", async () => {
  await using chat = await conversation();
  await assert.rejects(call(chat, "readFile", { path: "missing" }), (error) => error instanceof SandbankToolError && error.code === "not_found");
});
