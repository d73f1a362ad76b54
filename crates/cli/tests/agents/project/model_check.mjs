// The scripted model speaks as the real ones do, as far as their own published clients can tell.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { KEY, start } from "./model.mjs";

const { url, stop } = await start();

const openAi = new OpenAI({ apiKey: KEY, baseURL: `${url}/v1` });
const tools = [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }];
const ask = (content) => openAi.chat.completions.stream({ model: "scripted", tools, messages: [{ role: "user", content }] });
assert.equal((await ask("hello").finalChatCompletion()).choices[0].message.content, "You said: hello");
const called = (await ask("compute").finalChatCompletion()).choices[0];
assert.equal(called.finish_reason, "tool_calls");
assert.deepEqual(called.message.tool_calls.map((call) => call.function.name), ["bash", "writeFile", "readFile"]);
assert.equal(JSON.parse(called.message.tool_calls[1].function.arguments).path, "note.txt");
const stranger = new OpenAI({ apiKey: "wrong", baseURL: `${url}/v1`, maxRetries: 0 });
await assert.rejects(stranger.chat.completions.create({ model: "x", messages: [{ role: "user", content: "x" }] }), { status: 401 });

const anthropic = new Anthropic({ apiKey: KEY, baseURL: url });
const say = (content) => anthropic.messages.stream({ model: "scripted", max_tokens: 100, messages: [{ role: "user", content }] });
const greeting = await say("hello").finalMessage();
assert.deepEqual(greeting.content.map((block) => block.type), ["thinking", "text"]);
assert.equal(greeting.content[1].text, "You said: hello");
const used = await say("compute").finalMessage();
assert.equal(used.stop_reason, "tool_use");
assert.deepEqual(used.content.slice(2).map((block) => block.name), ["bash", "writeFile", "readFile"]);
assert.equal(used.content[3].input.path, "note.txt");

stop();
console.log("the model speaks as its clients understand");
process.exit(0);
