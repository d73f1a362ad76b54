// The tools' routes of one server, for one conversation. Nothing here is ever sent twice: a command
// that may have run is not run again.

import { SandbankToolError, badAnswer, errorOf, isObject, unreached } from "./error.js";
import { lines } from "./lines.js";

/** A tool as the server describes it. */
export interface Described {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

export interface ToolList {
  enabled: boolean;
  reason?: string;
  code?: string;
  tools: Described[];
}

export interface ServerOptions {
  url: string;
  token: string | undefined;
  session: string;
  fetch: typeof fetch;
}

/** A chat does not wait longer for its tools; it goes on without them. */
const LIST_MS = 10_000;

/** A stream without even a heartbeat, which comes every 15 s, is dead after this long. */
const SILENCE_MS = 45_000;

export class Server {
  constructor(private readonly options: ServerOptions) {}

  async list(prewarm: boolean): Promise<ToolList> {
    const path = prewarm ? "/api/tools?prewarm=true" : "/api/tools";
    const limit = AbortSignal.timeout(LIST_MS);
    const list = await this.#json("GET", path, undefined, limit).catch((error: unknown) => {
      if (error !== limit.reason) throw error;
      throw new SandbankToolError({ code: "timeout", message: `no answer of ${this.options.url} within ${LIST_MS} ms` });
    });
    if (!isObject(list) || typeof list.enabled !== "boolean" || !Array.isArray(list.tools)) {
      throw badAnswer("the server's list of tools is none");
    }
    return list as unknown as ToolList;
  }

  /** The result of a call. Followed, too: it may wait for a person longer than `fetch` waits for an answer's head. */
  async run(tool: string, input: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    let result: unknown;
    for await (const output of this.follow(tool, input, signal)) result = output;
    return result;
  }

  /**
   * What is known of a result, again and again; the last one is the result. Whoever stops reading,
   * or aborts, ends the call: the server kills what it started.
   */
  async *follow(tool: string, input: unknown, signal: AbortSignal | undefined): AsyncGenerator<unknown, void, undefined> {
    const connection = new AbortController();
    const either = signal ? AbortSignal.any([signal, connection.signal]) : connection.signal;
    try {
      const response = await this.#send("POST", `/api/tools/${tool}`, input, either, "application/x-ndjson");
      if (!response.body) throw badAnswer("the answer has no body");
      for await (const line of lines(response.body, SILENCE_MS)) {
        const record = parsed(line);
        if (record.type === "failed") throw failed(record);
        if (record.type !== "progress" && record.type !== "done") continue;
        yield record.output;
        if (record.type === "done") return;
      }
      throw new Error("it broke off before the result");
    } catch (error) {
      throw this.#explained(error, signal);
    } finally {
      connection.abort();
    }
  }

  async reset(): Promise<void> {
    await this.#json("DELETE", "/api/tools/session", undefined, undefined);
  }

  async #json(method: string, path: string, input: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    try {
      const response = await this.#send(method, path, input, signal, "application/json");
      return await response.json();
    } catch (error) {
      if (error instanceof SyntaxError) throw badAnswer(`the answer is no JSON: ${error.message}`);
      throw this.#explained(error, signal);
    }
  }

  async #send(method: string, path: string, input: unknown, signal: AbortSignal | undefined, accept: string): Promise<Response> {
    const { url, token, session } = this.options;
    const headers: Record<string, string> = { accept, "x-sandbank-session": bytesOf(session) };
    if (token) headers.authorization = `Bearer ${token}`;
    if (input !== undefined) headers["content-type"] = "application/json";
    const response = await this.options.fetch(url + path, {
      method,
      headers,
      // A token is not sent where it was not meant for.
      redirect: "error",
      ...(signal ? { signal } : {}),
      ...(input === undefined ? {} : { body: JSON.stringify(input) }),
    });
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  #explained(error: unknown, signal: AbortSignal | undefined): unknown {
    if (error instanceof SandbankToolError) return error;
    return signal?.aborted ? signal.reason : unreached(this.options.url, error);
  }
}

/** A header's characters are bytes to `fetch`, and UTF-8 to the server. */
function bytesOf(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

function parsed(line: string): Record<string, unknown> {
  try {
    const record: unknown = JSON.parse(line);
    if (isObject(record)) return record;
  } catch {
    // Told below.
  }
  throw badAnswer("a record of the call makes no sense");
}

function failed(record: Record<string, unknown>): SandbankToolError {
  const { code, error } = record;
  return new SandbankToolError({
    code: typeof code === "string" ? code : "failed",
    message: typeof error === "string" ? error : "the call failed",
    retryable: code === "unavailable",
  });
}
