// One line of a command's output, taken apart and checked: what is not as it should be is an error
// that says so, never a crash and never a byte that nobody wrote.

import { fromBase64 } from "./bytes.js";
import { Ending, type WireEnding } from "./ending.js";
import { SandbankError, isObject } from "./errors.js";

export type OutputRecord =
  | { type: "output"; stream: "stdout" | "stderr" | "pty"; data: Uint8Array; seq: number; timeMs: number | null }
  | { type: "dropped"; droppedBytes: number; droppedFrames: number; seq: number }
  | { type: "ending"; ending: Ending; seq: number }
  /** A heartbeat, or what a later server says. */
  | { type: "other"; seq: number };

const STREAMS = new Set(["stdout", "stderr", "pty"]);
const ENCODER = new TextEncoder();

export function recordOf(line: string): OutputRecord {
  const record = parsed(line);
  const { stream, type } = record;
  const seq = count(record.seq, "number");
  if (typeof stream === "string" && STREAMS.has(stream)) {
    const timeMs = typeof record.timeMs === "number" ? record.timeMs : null;
    return { type: "output", stream: stream as "stdout", data: dataOf(record), seq, timeMs };
  }
  if (stream === "control" && type === "dropped") {
    return { type, droppedBytes: count(record.bytes, "count of bytes"), droppedFrames: count(record.frames, "count of frames"), seq };
  }
  if (stream === "control" && type === "ending") {
    const ending = record.ending;
    if (!isObject(ending) || typeof ending.kind !== "string") throw badOutput("an ending has no kind");
    return { type, ending: new Ending(ending as unknown as WireEnding), seq };
  }
  return { type: "other", seq };
}

function parsed(line: string): Record<string, unknown> {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch (error) {
    throw badOutput(`a record is no JSON: ${(error as Error).message}`);
  }
  if (!isObject(record)) throw badOutput("a record is not an object");
  return record;
}

function count(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw badOutput(`a record has no ${what}`);
  return value;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function dataOf(record: Record<string, unknown>): Uint8Array {
  const { data } = record;
  if (typeof data !== "string") throw badOutput("a record has no data");
  if (record.encoding !== "base64") return ENCODER.encode(data);
  // Decoders differ in what they forgive.
  if (data.length % 4 !== 0 || !BASE64.test(data)) throw badOutput("a record's data is not base64");
  return fromBase64(data);
}

/** @internal */
export function badOutput(message: string): SandbankError {
  return new SandbankError({ code: "bad_output", message });
}
