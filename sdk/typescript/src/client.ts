// The way in.

import { BadRequest } from "./errors.js";
import { followEvents, type EventOptions, type ServerEvent } from "./events.js";
import { DEFAULT_RETRY, type RetryOptions } from "./retry.js";
import { Sandboxes } from "./sandboxes.js";
import { Transport } from "./transport.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];
export type Health = Schemas["Health"];
export type Doctor = Schemas["Doctor"];
export type Image = Schemas["Image"];

export interface SandbankOptions {
  /** By default `SANDBANK_URL`, or `http://127.0.0.1:8080`. */
  url?: string;
  /** By default `SANDBANK_TOKEN`. For the token file of a local server use `sandbank/node`. */
  token?: string;
  /** For one call, from its first try to the last byte of its answer; streams, waits and uploads have none. */
  timeoutMs?: number;
  /** A stream without even a heartbeat, which comes every 15 s, is dead after this long. */
  silenceMs?: number;
  retry?: Partial<RetryOptions>;
  /**
   * Called with each of the `warnings` of a sandbox that is created and a command that is started:
   * what of the request had no effect, and what to do. By default `console.warn`.
   */
  onWarning?: (text: string) => void;
  /** Another `fetch`, for proxies, certificates or logging. */
  fetch?: typeof fetch;
}

const DEFAULT_URL = "http://127.0.0.1:8080";
const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_SILENCE_MS = 45_000;

/**
 * A Sandbank server.
 *
 * Requests that only read, and starts, which carry an id of their own, are repeated when the
 * connection fails or the server is busy. Nothing else ever is.
 *
 * ```ts
 * const client = new Sandbank();
 * await using sandbox = await client.sandboxes.create();
 * const { stdout } = await sandbox.commands.run("uname -a");
 * ```
 */
export class Sandbank {
  readonly sandboxes: Sandboxes;
  readonly images: { list(): Promise<Image[]> };
  readonly #transport: Transport;

  constructor(options: SandbankOptions = {}) {
    const token = options.token ?? environment("SANDBANK_TOKEN");
    const transport = new Transport({
      url: baseUrl(options.url ?? environment("SANDBANK_URL") ?? DEFAULT_URL),
      token: token?.trim() || undefined,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      silenceMs: options.silenceMs ?? DEFAULT_SILENCE_MS,
      retry: { ...DEFAULT_RETRY, ...options.retry },
      onWarning: options.onWarning ?? ((text) => console.warn(`sandbank: ${text}`)),
    });
    this.#transport = transport;
    this.sandboxes = new Sandboxes(transport);
    this.images = {
      list: async () => (await transport.json<Schemas["ImageList"]>("GET", "/v1/images")).images,
    };
  }

  /** Whether the server serves. Needs no token. */
  health(): Promise<Health> {
    return this.#transport.json("GET", "/v1/health");
  }

  /** Each security control and whether it is in force on the server's machine. */
  doctor(): Promise<Doctor> {
    return this.#transport.json("GET", "/v1/doctor");
  }

  /** What happens, for as long as the loop runs; cuts and restarts of the server leave no gap. */
  events(options: EventOptions = {}): AsyncGenerator<ServerEvent, void, undefined> {
    return followEvents(this.#transport, options);
  }
}

/** Checked here, so that a slip is told by name instead of as a failed connection. */
export function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new BadRequest({ code: "bad_url", message: `${text} is not the http or https address of a server` });
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

interface WithProcess {
  process?: { env?: Record<string, string | undefined> };
}

/** Browsers have none; Deno may refuse. */
export function environment(name: string): string | undefined {
  try {
    return (globalThis as WithProcess).process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}
