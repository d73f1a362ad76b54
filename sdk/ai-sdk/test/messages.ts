// Anthropic's messages, as a model's server speaks them.

import type { Asked, Turn } from "./scripted_model.js";

interface Block {
  type: string;
  content?: string | { text: string }[];
}

interface Body {
  stream?: boolean;
  tools?: { name: string; description: string; input_schema: unknown }[];
  messages: { role: string; content: string | Block[] }[];
}

export function read(body: Body): Asked {
  const tools = (body.tools ?? []).map(({ name, description, input_schema: schema }) => ({ name, description, schema }));
  const blocks = body.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const results = blocks.filter(({ type }) => type === "tool_result").map(({ content }) => text(content));
  return { stream: body.stream ?? false, tools, results };
}

function text(content: Block["content"]): string {
  return typeof content === "string" ? content : (content ?? []).map((part) => part.text).join("");
}

const HEAD = { id: "msg_scripted", type: "message", role: "assistant", model: "scripted" };
const USAGE = { input_tokens: 1, output_tokens: 1 };

function blocks(turn: Turn): { type: string; text?: string; input?: unknown }[] {
  if (typeof turn === "string") return [{ type: "text", text: turn }];
  const id = () => `toolu_${Math.random().toString(36).slice(2)}`;
  return turn.map(({ tool: name, input }) => ({ type: "tool_use", id: id(), name, input }));
}

const reason = (turn: Turn) => (typeof turn === "string" ? "end_turn" : "tool_use");

export function whole(turn: Turn): object {
  return { ...HEAD, content: blocks(turn), stop_reason: reason(turn), stop_sequence: null, usage: USAGE };
}

export function events(turn: Turn): string {
  const event = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
  const begin = event("message_start", { message: { ...HEAD, content: [], stop_reason: null, stop_sequence: null, usage: USAGE } });
  const middle = blocks(turn).map((block, index) => {
    const isText = block.type === "text";
    const content_block = isText ? { type: "text", text: "" } : { ...block, input: {} };
    const delta = isText
      ? { type: "text_delta", text: block.text }
      : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
    return (
      event("content_block_start", { index, content_block }) +
      event("content_block_delta", { index, delta }) +
      event("content_block_stop", { index })
    );
  });
  const end = event("message_delta", { delta: { stop_reason: reason(turn), stop_sequence: null }, usage: USAGE });
  return begin + middle.join("") + end + event("message_stop", {});
}
