// What happens on the server, as it happens, without a gap.

import { ConnectionFailed, badAnswer, isObject } from "./errors.js";
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

/** Goes on after a cut, and after a restart of the server, from the last event that was seen. */
export async function* followEvents(transport: Transport, options: EventOptions = {}): AsyncGenerator<ServerEvent, void, undefined> {
  const retries = transport.retries(options.signal);
  let after = options.after ?? 0;
  for (;;) {
    try {
      const stream = await transport.open("/v1/events", { query: { after }, signal: options.signal });
      const parser = new SseParser();
      for await (const piece of stream.pieces()) {
        // A comment is a sign of life, too.
        retries.progress();
        for (const { data } of parser.feed(piece)) {
          const event = eventOf(data);
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

function eventOf(data: string): ServerEvent {
  try {
    const event: unknown = JSON.parse(data);
    if (isObject(event) && typeof event.seq === "number") return event as ServerEvent;
  } catch {
    // Told below.
  }
  throw badAnswer("an event is not an object with a number");
}
