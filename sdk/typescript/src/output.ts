// A command's output as it comes, resumed wherever a connection breaks.
//
// The server numbers its records without gaps and keeps them. A record counts once its whole line
// is there; after a cut the stream is asked for again from the last one that counted. So no byte
// is lost and none comes twice. What the server itself no longer keeps is told as `dropped`.

import { fromBase64, textOf } from "./bytes.js";
import { exitCodeOf, type Ended, type Ending } from "./ending.js";
import { ConnectionFailed } from "./errors.js";
import { Lines } from "./lines.js";
import type { Retries } from "./retry.js";
import type { Transport } from "./transport.js";

/** Bytes that a command wrote. */
export class Output {
  readonly type = "output";

  constructor(
    /** `pty` for a command on a terminal, which has only one stream. */
    readonly stream: "stdout" | "stderr" | "pty",
    /** Exactly what was written. */
    readonly data: Uint8Array,
    /** Where to go on: `command.stream({ after: seq })` begins with what follows. */
    readonly seq: number,
    /** Unix time in milliseconds at which it was written. */
    readonly timeMs: number,
  ) {}

  /** As UTF-8; the server never cuts a character in two. */
  get text(): string {
    return textOf(this.data);
  }
}

/**
 * Output that the server no longer had: the command wrote more than is kept before anybody read
 * it, or the reader was too slow.
 */
export interface Dropped {
  readonly type: "dropped";
  readonly frames: number;
  readonly bytes: number;
  readonly seq: number;
}

/** The last event. */
export interface EndedEvent extends Ended {
  readonly type: "ending";
  readonly seq: number;
}

export type OutputEvent = Output | Dropped | EndedEvent;

export interface StreamOptions {
  /** Only what came after this `seq`. */
  after?: number;
  /** Ends the stream, not the command. */
  signal?: AbortSignal;
}

/** Every event from `after` to the ending. */
export async function* followOutput(
  transport: Transport,
  path: string,
  options: StreamOptions = {},
): AsyncGenerator<OutputEvent, void, undefined> {
  const retries = transport.retries(options.signal);
  const position = { after: options.after ?? 0 };
  for (;;) {
    try {
      for await (const event of oneConnection(transport, path, position, retries, options.signal)) {
        yield event;
        if (event.type === "ending") return;
      }
      // The server closes a stream that it cannot go on with only after the ending.
      throw new ConnectionFailed({
        code: "connection_failed",
        message: "the stream of output broke off",
        retryable: true,
      });
    } catch (error) {
      await retries.after(error);
    }
  }
}

async function* oneConnection(
  transport: Transport,
  path: string,
  position: { after: number },
  retries: Retries,
  signal: AbortSignal | undefined,
): AsyncGenerator<OutputEvent, void, undefined> {
  const query = { encoding: "base64", after: position.after };
  const stream = await transport.open(path, { query, signal });
  const lines = new Lines();
  for await (const piece of stream.pieces()) {
    for (const line of lines.feed(piece)) {
      retries.progress();
      const event = eventOf(JSON.parse(line) as Record);
      if (!event) continue;
      if (event.type !== "ending") {
        if (event.seq <= position.after) continue;
        position.after = event.seq;
      }
      yield event;
    }
  }
}

type Record =
  | { stream: "stdout" | "stderr" | "pty"; data: string; seq: number; timeMs: number }
  | { stream: "control"; type: "dropped"; frames: number; bytes: number; seq: number }
  | { stream: "control"; type: "ending"; ending: Ending; seq: number }
  | { stream: "control"; type: "heartbeat"; seq: number };

/** None for a heartbeat, and for what later servers may say. */
function eventOf(record: Record): OutputEvent | undefined {
  if (record.stream !== "control") {
    return new Output(record.stream, fromBase64(record.data), record.seq, record.timeMs);
  }
  switch (record.type) {
    case "dropped":
      return { type: "dropped", frames: record.frames, bytes: record.bytes, seq: record.seq };
    case "ending":
      return { type: "ending", ending: record.ending, exitCode: exitCodeOf(record.ending), seq: record.seq };
    default:
      return undefined;
  }
}
