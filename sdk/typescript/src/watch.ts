// What happens to files, as it happens, without a gap.

import { ConnectionFailed, badAnswer, isObject } from "./errors.js";
import { SseParser } from "./sse.js";
import type { Transport } from "./transport.js";

/** One change, or what is to be known about changes. */
export interface WatchEvent {
  /** To go on from: `watch(path, { after: seq })`. */
  seq: number;
  /**
   * `ready`: every change from now on is told; `moved` with everything below it; `reset`: changes
   * may be missing, list again.
   */
  kind: "ready" | "created" | "modified" | "removed" | "moved" | "reset" | "end";
  path?: string;
  /** The exact bytes where the path is not UTF-8. */
  pathHex?: string;
  /** Where a moved one was. */
  from?: string;
  fromHex?: string;
  isDir?: boolean;
  /** Of `reset` and `end`. */
  reason?: string;
}

export interface WatchOptions {
  /** Directories in it, too; true by default. */
  recursive?: boolean;
  /** Only changes numbered above this one. */
  after?: number;
  /** Names of directories that are not entered; `.git/objects` and `node_modules` by default. */
  exclude?: string[];
  signal?: AbortSignal;
}

/** Until `end`; goes on after a cut from the last change that was seen. */
export async function* watch(
  transport: Transport,
  sandboxPath: string,
  path: string,
  options: WatchOptions,
): AsyncGenerator<WatchEvent, void, undefined> {
  const { recursive, exclude, signal } = options;
  const retries = transport.retries(signal);
  let { after } = options;
  let isReady = false;
  for (;;) {
    try {
      const query = { path, recursive, after, exclude: exclude?.join(",") };
      const stream = await transport.open(`${sandboxPath}/files:watch`, { query, signal });
      const parser = new SseParser();
      for await (const piece of stream.pieces()) {
        // A comment is a sign of life, too.
        retries.progress();
        for (const { data } of parser.feed(piece)) {
          const event = eventOf(data);
          after = event.seq;
          // Every connection says it; whoever iterates has one.
          if (event.kind === "ready" && isReady) continue;
          isReady ||= event.kind === "ready";
          yield event;
          if (event.kind === "end") return;
        }
      }
      throw new ConnectionFailed({ code: "connection_failed", message: "the watch ended", retryable: true });
    } catch (error) {
      await retries.after(error);
    }
  }
}

function eventOf(data: string): WatchEvent {
  try {
    const event: unknown = JSON.parse(data);
    if (isObject(event) && typeof event.seq === "number" && typeof event.kind === "string") return event as unknown as WatchEvent;
  } catch {
    // Told below.
  }
  throw badAnswer("a change is not an object with a number");
}
