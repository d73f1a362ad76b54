// OpenAI's chat completions, as a model's server speaks them.

import type { Asked, Turn } from "./scripted_model.js";

interface Body {
  stream?: boolean;
  tools?: { function: { name: string; description: string; parameters: unknown } }[];
  messages: { role: string; content: string }[];
}

export function read(body: Body): Asked {
  const tools = (body.tools ?? []).map(({ function: { name, description, parameters: schema } }) => ({ name, description, schema }));
  const results = body.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  return { stream: body.stream ?? false, tools, results };
}

const HEAD = { id: "scripted", created: 0, model: "scripted" };
const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

function message(turn: Turn): object {
  if (typeof turn === "string") return { role: "assistant", content: turn };
  const calls = turn.map(({ tool, input }, index) => ({
    index,
    id: `call_${index}_${Math.random().toString(36).slice(2)}`,
    type: "function",
    function: { name: tool, arguments: JSON.stringify(input) },
  }));
  return { role: "assistant", content: null, tool_calls: calls };
}

const reason = (turn: Turn) => (typeof turn === "string" ? "stop" : "tool_calls");

export function whole(turn: Turn): object {
  return { ...HEAD, object: "chat.completion", choices: [{ index: 0, message: message(turn), finish_reason: reason(turn) }], usage: USAGE };
}

export function events(turn: Turn): string {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ ...HEAD, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }], usage: USAGE })}\n\n`;
  return `${chunk(message(turn), null)}${chunk({}, reason(turn))}data: [DONE]\n\n`;
}
