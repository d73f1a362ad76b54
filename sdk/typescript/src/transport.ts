// One HTTP server: sends requests, reads answers, repeats what may be repeated.

import { SandbankError, Timeout, badAnswer, errorOf } from "./errors.js";
import { Retries, type RetryOptions } from "./retry.js";
import { Reach } from "./unreached.js";

export interface TransportOptions {
  url: string;
  token: string | undefined;
  fetch: typeof fetch;
  timeoutMs: number;
  silenceMs: number;
  retry: RetryOptions;
  /** Told what of a request had no effect. */
  onWarning?: (text: string) => void;
}

export interface Call {
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: BodyInit;
  signal?: AbortSignal | undefined;
  /** For the whole answer and all tries together; 0 means without end. */
  timeoutMs?: number | undefined;
  /** At least this long, where the client's own is shorter. */
  leastMs?: number;
  /** For the first byte of a stream, and between any two. */
  silenceMs?: number | undefined;
  /** Doing it twice is the same as once. So for GET, unless it says otherwise. */
  repeatable?: boolean;
}

/** An answer whose body is read piece by piece. */
export interface Streamed {
  readonly response: Response;
  /** Throws `ConnectionFailed` when it breaks off or stays silent for too long. */
  pieces(): AsyncGenerator<Uint8Array, void, undefined>;
  /** Lets go of the connection. */
  close(): void;
}

/** For a create: longer than a server lets it wait for its turn and then be made. */
export const CREATE_MS = 200_000;

/** 0 is without end. */
function atLeast(ownMs: number, leastMs = 0): number {
  return ownMs === 0 ? 0 : Math.max(leastMs, ownMs);
}

export class Transport {
  readonly #reach: Reach;

  constructor(readonly options: TransportOptions) {
    this.#reach = new Reach(options.url);
  }

  /** The warnings of an answer, once they are told. */
  warned(warnings: readonly string[] = []): readonly string[] {
    for (const text of warnings) this.options.onWarning?.(text);
    return warnings;
  }

  retries(signal: AbortSignal | undefined, timeoutMs = 0): Retries {
    return new Retries(this.options.retry, signal, timeoutMs);
  }

  /** The answer's JSON. */
  async json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const timeoutMs = call.timeoutMs ?? atLeast(this.options.timeoutMs, call.leastMs);
    const retries = this.retries(call.signal, timeoutMs);
    const repeatable = call.repeatable ?? method === "GET";
    for (;;) {
      try {
        return await this.#answer<T>(method, path, call, retries.leftMs());
      } catch (error) {
        if (!repeatable) throw error;
        await retries.after(error);
      }
    }
  }

  async #answer<T>(method: string, path: string, call: Call, timeoutMs: number): Promise<T> {
    const { response, lease } = await this.#send(method, path, call, timeoutMs);
    let text: string;
    try {
      text = await response.text();
    } catch (error) {
      throw lease.explain(error);
    } finally {
      lease.release();
    }
    // No answer is empty. Chromium takes a head that was cut for a whole one, and its body for none.
    if (text === "") throw this.#reach.failure(new Error("the answer broke off"));
    // All of it is here, so asking again would only bring the same.
    return parsed(text, response.status) as T;
  }

  /** One try; whoever reads the stream knows how to go on after a failure. */
  async open(path: string, call: Call = {}): Promise<Streamed> {
    const silenceMs = call.silenceMs ?? this.options.silenceMs;
    const method = call.json === undefined ? "GET" : "POST";
    const { response, lease } = await this.#send(method, path, call, silenceMs).catch((error: unknown) => {
      // To a stream, silence before its first byte is what it is later: a dead connection.
      throw error instanceof Timeout && error.status === undefined ? this.#reach.failure(error) : error;
    });
    lease.rest();
    return {
      response,
      pieces: () => pieces(response, lease, silenceMs),
      close: () => lease.abandon(),
    };
  }

  async #send(method: string, path: string, call: Call, timeoutMs: number): Promise<{ response: Response; lease: Lease }> {
    const headers: Record<string, string> = { ...call.headers };
    const { token } = this.options;
    if (token) headers.authorization = `Bearer ${token}`;
    if (call.json !== undefined) headers["content-type"] = "application/json";
    const body = call.json === undefined ? call.body : JSON.stringify(call.json);
    const lease = new Lease(call.signal, timeoutMs, this.#reach);
    const init: RequestInit & { duplex?: "half" } = {
      method,
      headers,
      redirect: "manual",
      signal: lease.signal,
      ...(body === undefined ? {} : { body }),
      ...(body instanceof ReadableStream ? { duplex: "half" } : {}),
    };
    try {
      const response = await this.options.fetch(this.options.url + path + queryText(call.query), init);
      this.#reach.met();
      if (response.ok) return { response, lease };
      if (response.status < 400) throw redirected(response);
      throw await errorOf(response);
    } catch (error) {
      lease.release();
      throw lease.explain(error);
    }
  }
}

function parsed(text: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badAnswer(`the answer is no JSON: ${(error as Error).message}`, status);
  }
}

function queryText(query: Call["query"]): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return text && `?${text}`;
}

function redirected(response: Response): SandbankError {
  const target = response.headers.get("location");
  return new SandbankError({
    code: "redirected",
    message: `the server answers with another address${target ? `: ${target}` : ""}`,
    hint: "use that address as `url`: a token is not sent where it was not meant for",
    status: response.status,
  });
}

/** A request's right to go on: ends with the caller's signal or when its time is up. */
class Lease {
  readonly #controller = new AbortController();
  readonly #stop = () => this.#controller.abort(this.caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #expired = false;

  constructor(
    private readonly caller: AbortSignal | undefined,
    private readonly limitMs: number,
    private readonly reach: Reach,
  ) {
    caller?.throwIfAborted();
    caller?.addEventListener("abort", this.#stop, { once: true });
    if (limitMs > 0) this.#timer = setTimeout(() => this.#expire(), limitMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  #expire(): void {
    this.#expired = true;
    this.#controller.abort();
  }

  /** The clock stops, the caller's signal still counts. */
  rest(): void {
    clearTimeout(this.#timer);
  }

  release(): void {
    this.rest();
    this.caller?.removeEventListener("abort", this.#stop);
  }

  abandon(): void {
    this.release();
    this.#controller.abort();
  }

  /** What a failure of fetch means. */
  explain(error: unknown): unknown {
    if (this.caller?.aborted) return this.caller.reason;
    if (error instanceof SandbankError) return error;
    if (this.#expired) {
      return new Timeout({ code: "timeout", message: `no answer within ${this.limitMs} ms`, cause: error });
    }
    return this.reach.failure(error);
  }
}

async function* pieces(response: Response, lease: Lease, silenceMs: number): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = response.body?.getReader();
  try {
    while (reader) {
      const piece = await within(silenceMs, reader.read());
      if (piece.done) return;
      yield piece.value;
    }
  } catch (error) {
    throw lease.explain(error);
  } finally {
    lease.abandon();
    // Frees the connection where aborting alone does not; its failure says nothing new.
    reader?.cancel().catch(() => undefined);
  }
}

/** A connection that is dead without saying so is told by its silence: the server sends heartbeats. */
function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing came for ${limitMs} ms`)), limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
