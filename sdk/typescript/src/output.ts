// A command's output as it comes, resumed wherever a connection breaks.
//
// The server numbers its records without gaps and keeps them. A record counts once its whole line
// is there; after a cut the stream is asked for again from the last one that counted. So no byte
// is lost and none comes twice. What the server itself no longer keeps is told as `dropped`.

import { textOf } from "./bytes.js";
import { Ending } from "./ending.js";
import { BadRequest, ConnectionFailed, NotFound, type SandbankError } from "./errors.js";
import { Lines } from "./lines.js";
import { badOutput, recordOf, type OutputRecord } from "./record.js";
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
    readonly timeMs: number | null,
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
  readonly droppedBytes: number;
  readonly droppedFrames: number;
  readonly seq: number;
}

/** The last event. */
export interface EndedEvent {
  readonly type: "ending";
  readonly ending: Ending;
  readonly exitCode: number | null;
  readonly seq: number;
}

export type OutputEvent = Output | Dropped | EndedEvent;

export interface StreamOptions {
  /** Only what came after this `seq`. */
  after?: number;
  /** Ends the stream, not the command. */
  signal?: AbortSignal;
}

/** How far a stream has come. */
interface Position {
  after: number;
  wasOpen: boolean;
}

/** Every event from `after` to the ending. */
export async function* followOutput(
  transport: Transport,
  path: string,
  options: StreamOptions = {},
): AsyncGenerator<OutputEvent, void, undefined> {
  const retries = transport.retries(options.signal);
  const position: Position = { after: options.after ?? 0, wasOpen: false };
  for (;;) {
    try {
      for await (const event of oneConnection(transport, path, position, retries, options.signal)) {
        yield event;
        if (event.type === "ending") return;
      }
      // The server closes a stream that it cannot go on with only after the ending.
      throw new ConnectionFailed({
        code: "connection_failed",
        message: "the output broke off before the command's ending",
        retryable: true,
      });
    } catch (error) {
      if (position.wasOpen && isEnd(error)) {
        yield lost(error, position.after);
        return;
      }
      await retries.after(error);
    }
  }
}

/** A sandbox that ended while we were cut off: who stayed connected is told `lost`. */
function isEnd(error: unknown): error is SandbankError {
  return error instanceof NotFound || (error instanceof BadRequest && error.code === "invalid");
}

function lost(error: SandbankError, seq: number): EndedEvent {
  const ending = new Ending({ kind: "lost", reason: error.hint ?? error.message });
  return { type: "ending", ending, exitCode: null, seq };
}

async function* oneConnection(
  transport: Transport,
  path: string,
  position: Position,
  retries: Retries,
  signal: AbortSignal | undefined,
): AsyncGenerator<OutputEvent, void, undefined> {
  const query = { encoding: "base64", after: position.after };
  const stream = await transport.open(path, { query, signal });
  position.wasOpen = true;
  const lines = new Lines();
  for await (const piece of stream.pieces()) {
    for (const line of lines.feed(piece)) {
      const record = recordOf(line);
      retries.progress();
      const event = eventOf(record, position.after);
      if (!event) continue;
      if (event.type !== "ending") position.after = event.seq;
      yield event;
    }
  }
}

/** None for a heartbeat, for what came before, and for what later servers may say. */
function eventOf(record: OutputRecord, after: number): OutputEvent | undefined {
  switch (record.type) {
    case "output":
      if (record.seq <= after) return undefined;
      if (record.seq !== after + 1) throw badOutput(`record ${after + 1} is missing before ${record.seq}`);
      return new Output(record.stream, record.data, record.seq, record.timeMs);
    case "dropped": {
      const { seq, droppedBytes, droppedFrames } = record;
      return seq <= after ? undefined : { type: "dropped", droppedBytes, droppedFrames, seq };
    }
    case "ending":
      return { type: "ending", ending: record.ending, exitCode: record.ending.exitCode, seq: record.seq };
    default:
      return undefined;
  }
}
