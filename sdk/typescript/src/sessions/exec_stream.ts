// A command's output in a session as server-sent events. They have no numbers, so a stream that
// breaks cannot be resumed: it fails, and the command may have run.

import { SandbankError } from "../errors.js";
import { SseParser } from "../sse.js";
import type { Streamed } from "../transport.js";
import { execResult, type WireExec } from "./types.js";

/** Output as it comes, then `done`. */
export type StreamEvent =
  | { type: "chunk"; chunk: string; /** Unix time. */ timestampMs: number }
  | { type: "done"; exitCode: number; cwd: string; durationMs: number };

/** The server reported a failure inside the stream, or the stream ended before the command. */
export class StreamError extends SandbankError {}

/** Throws `StreamError` unless the stream ends with `done`. */
export async function* readExecStream(stream: Streamed): AsyncGenerator<StreamEvent, void, undefined> {
  const parser = new SseParser();
  for await (const piece of stream.pieces()) {
    for (const { event, data } of parser.feed(piece)) {
      const body = JSON.parse(data) as WireExec & { chunk?: string; timestamp?: number; error?: string };
      if (event === "chunk") {
        yield { type: "chunk", chunk: body.chunk ?? "", timestampMs: body.timestamp ?? 0 };
      } else if (event === "done") {
        const { exitCode, cwd, durationMs } = execResult(body);
        yield { type: "done", exitCode, cwd, durationMs };
        return;
      } else if (event === "error") {
        throw new StreamError({ code: "stream_error", message: body.error ?? "the server reported an error", status: 200 });
      }
    }
  }
  const message = "the stream ended before the command; it may have run";
  throw new StreamError({ code: "stream_incomplete", message, status: 200 });
}
