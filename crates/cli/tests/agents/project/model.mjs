// A model that plays a script: OpenAI's chat completions and Anthropic's messages, streamed.
// What it says depends on the last words of the person, and on results of tools that it is told.

import { createServer } from "node:http";

export const KEY = "scripted-key";

/** What was asked, whatever protocol it came in. */
function openAi(body) {
  const last = body.messages.findLastIndex((message) => message.role === "user");
  const results = (from) => body.messages.slice(from).filter((message) => message.role === "tool");
  return {
    user: body.messages[last].content,
    results: results(last).map((message) => message.content),
    earlier: results(0).length - results(last).length,
    tools: (body.tools ?? []).map((tool) => tool.function.name),
  };
}

function anthropic(body) {
  const isResult = (message) => Array.isArray(message.content) && message.content[0].type === "tool_result";
  const last = body.messages.findLastIndex((message) => message.role === "user" && !isResult(message));
  const text = body.messages[last].content;
  const results = (from) => body.messages.slice(from).filter(isResult).flatMap((message) => message.content);
  return {
    user: typeof text === "string" ? text : text.map((part) => part.text).join(""),
    results: results(last).map((result) => result.content),
    earlier: results(0).length - results(last).length,
    tools: (body.tools ?? []).map((tool) => tool.name),
  };
}

/** What the model says: thinking, text and calls. */
function reply({ user, results, earlier, tools }) {
  if (user.includes("which tools")) return { text: `I have: ${tools.join(" ")}.` };
  if (user.includes("how many results")) return { text: `There were ${earlier} results.` };
  if (results.length > 0) return { text: `The tools said: ${results.join(" and ")}` };
  if (user.includes("compute")) {
    const command = "for i in 1 2 3; do echo line $i; sleep 0.4; done; echo $((6 * 7)); echo oops >&2";
    return {
      thinking: "That is 42.",
      text: "Let me see.",
      calls: [
        ["bash", { command }],
        ["writeFile", { path: "note.txt", content: "noted\n" }],
        ["readFile", { path: "note.txt" }],
      ],
    };
  }
  if (user.includes("missing")) return { calls: [["readFile", { path: "there/is/none" }]] };
  if (user.includes("wait")) return { calls: [["bash", { command: "echo begun; sleep 7331" }]] };
  return { thinking: "A greeting.", text: `You said: ${user}` };
}

const pieces = (text) => (text ?? "").match(/[^]{1,7}/g) ?? [];

function* completion({ thinking, text, calls = [] }) {
  const chunk = (delta, finish_reason = null) => ({
    id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted",
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
  });
  yield chunk({ role: "assistant", content: "" });
  for (const piece of pieces(thinking)) yield chunk({ reasoning_content: piece });
  for (const piece of pieces(text)) yield chunk({ content: piece });
  for (const [index, [name, input]] of calls.entries()) {
    const call = { index, id: `call_${index}`, type: "function", function: { name, arguments: "" } };
    yield chunk({ tool_calls: [call] });
    for (const piece of pieces(JSON.stringify(input))) {
      yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  yield chunk({}, calls.length > 0 ? "tool_calls" : "stop");
}

function* message({ thinking, text, calls = [] }) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  yield {
    type: "message_start",
    message: {
      id: "msg_1", type: "message", role: "assistant", model: "scripted", content: [],
      stop_reason: null, stop_sequence: null, usage,
    },
  };
  yield { type: "ping" };
  let index = 0;
  function* block(content_block, deltas) {
    yield { type: "content_block_start", index, content_block };
    for (const delta of deltas) yield { type: "content_block_delta", index, delta };
    yield { type: "content_block_stop", index };
    index += 1;
  }
  if (thinking) {
    const thought = pieces(thinking).map((piece) => ({ type: "thinking_delta", thinking: piece }));
    thought.push({ type: "signature_delta", signature: "signed" });
    yield* block({ type: "thinking", thinking: "", signature: "" }, thought);
  }
  if (text) {
    yield* block({ type: "text", text: "" }, pieces(text).map((piece) => ({ type: "text_delta", text: piece })));
  }
  for (const [number, [name, input]] of calls.entries()) {
    const typed = pieces(JSON.stringify(input));
    yield* block(
      { type: "tool_use", id: `toolu_${number}`, name, input: {} },
      ["", ...typed].map((partial_json) => ({ type: "input_json_delta", partial_json })),
    );
  }
  const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
  yield { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage };
  yield { type: "message_stop" };
}

async function answer(request, response) {
  let text = "";
  for await (const piece of request) text += piece;
  const body = JSON.parse(text);
  const isOpenAi = request.url === "/v1/chat/completions";
  // Anthropic's API takes the one, its newer clients send the other.
  const key = (!isOpenAi && request.headers["x-api-key"]) || request.headers.authorization?.replace("Bearer ", "");
  if (key !== KEY) {
    response.writeHead(401, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { type: "authentication_error", message: `not ${key}` } }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const events = isOpenAi ? completion(reply(openAi(body))) : message(reply(anthropic(body)));
  for (const event of events) {
    const name = isOpenAi ? "" : `event: ${event.type}\n`;
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(isOpenAi ? "data: [DONE]\n\n" : undefined);
}

/** Its address, once it listens. */
export async function start() {
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { type: "invalid_request_error", message: String(error) } }));
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

if (process.argv[1] === import.meta.filename) {
  const { url } = await start();
  console.log(url);
}
