// What happens on the server, as it happens, without a gap.

import { ConnectionFailed } from "./errors.js";
import { SseParser } from "./sse.js";
import type { Transport } from "./transport.js";
import type { components } from "./wire.js";

/** Such as `sandbox.created` or `port.published`. */
export type ServerEvent = components["schemas"]["Event"];

export interface EventOptions {
  /** Only events numbered above this one; 0, the default, begins with the oldest that is kept. */
  after?: number;
  signal?: AbortSignal;
}

/** A stream that is alive for this long, be it by heartbeats alone, is no try in vain. */
const SETTLED_MS = 10_000;

/** Goes on after a cut, and after a restart of the server, from the last event that was seen. */
export async function* followEvents(transport: Transport, options: EventOptions = {}): AsyncGenerator<ServerEvent, void, undefined> {
  const retries = transport.retries(options.signal);
  let after = options.after ?? 0;
  for (;;) {
    try {
      const stream = await transport.open("/v1/events", { query: { after }, signal: options.signal });
      const [parser, opened] = [new SseParser(), Date.now()];
      for await (const piece of stream.pieces()) {
        if (Date.now() - opened > SETTLED_MS) retries.progress();
        for (const { data } of parser.feed(piece)) {
          retries.progress();
          const event = JSON.parse(data) as ServerEvent;
          if (event.seq <= after) continue;
          after = event.seq;
          yield event;
        }
      }
      throw new ConnectionFailed({ code: "connection_failed", message: "the stream of events ended", retryable: true });
    } catch (error) {
      await retries.after(error);
    }
  }
}
