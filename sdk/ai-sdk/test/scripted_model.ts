// A model that plays a script on loopback, in OpenAI's and in Anthropic's protocol, and keeps what it
// was told.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import * as chatCompletions from "./chat_completions.js";
import * as messages from "./messages.js";

export interface Call {
  tool: string;
  input: unknown;
}

/** Calls at the same time, or the last answer. */
export type Turn = Call[] | string;

/** A request, as far as tests look at it. */
export interface Asked {
  stream: boolean;
  tools: { name: string; description: string; schema: unknown }[];
  /** What each tool said, in the order of the calls. */
  results: string[];
}

const PROTOCOLS = { "/v1/chat/completions": chatCompletions, "/v1/messages": messages };

export class ScriptedModel implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server: Server;

  private constructor(script: Turn[]) {
    this.#server = createServer(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const protocol = PROTOCOLS[request.url as keyof typeof PROTOCOLS];
      const asked = protocol.read(JSON.parse(Buffer.concat(pieces).toString()));
      const turn = script[this.asked.length] ?? "I have nothing more to say.";
      this.asked.push(asked);
      const body = asked.stream ? protocol.events(turn) : JSON.stringify(protocol.whole(turn));
      response.writeHead(200, { "content-type": asked.stream ? "text/event-stream" : "application/json" }).end(body);
    });
  }

  static async start(...script: Turn[]): Promise<ScriptedModel> {
    const model = new ScriptedModel(script);
    await once(model.#server.listen(0, "127.0.0.1"), "listening");
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  get openai() {
    return createOpenAICompatible({ name: "scripted", baseURL: this.url, apiKey: "none" })("scripted");
  }

  get anthropic() {
    return createAnthropic({ baseURL: this.url, apiKey: "none" })("claude-sonnet-4-5");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
