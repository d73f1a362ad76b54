// A command's output in a session as server-sent events. They have no numbers, so a stream that
// breaks cannot be resumed: it fails, and the command may have run.

import { ConnectionFailed, Gone, SandbankError, Timeout, badAnswer, isObject, type ErrorFacts } from "../errors.js";
import { SseParser } from "../sse.js";
import type { Streamed } from "../transport.js";
import { execResult, type WireExec } from "./types.js";

/** Output as it comes, then `done`. */
export type StreamEvent =
  | { type: "chunk"; chunk: string; /** Unix time. */ timestampMs: number }
  | { type: "done"; exitCode: number; cwd: string; durationMs: number; /** Some output was dropped: it was read too slowly. */ truncated: boolean };

/** The server reported a failure inside the stream; `code` is the server's. */
export class StreamError extends SandbankError {}

/** Throws unless the stream ends with `done`. Heartbeats come as comments, and count as life. */
export async function* readExecStream(stream: Streamed): AsyncGenerator<StreamEvent, void, undefined> {
  const parser = new SseParser();
  for await (const piece of stream.pieces()) {
    for (const { event, data } of parser.feed(piece)) {
      const body = bodyOf(data);
      if (event === "chunk") {
        yield { type: "chunk", chunk: body.chunk ?? "", timestampMs: body.timestamp ?? 0 };
      } else if (event === "done") {
        const { exitCode, cwd, durationMs, truncated } = execResult(body);
        yield { type: "done", exitCode, cwd, durationMs, truncated };
        return;
      } else if (event === "error") {
        throw failure(body.error_code ?? "stream_error", body.error ?? "the command failed");
      }
    }
  }
  const message = "the output broke off before the command's end; it may have run";
  throw new ConnectionFailed({ code: "connection_failed", message, retryable: true });
}

type Body = WireExec & { chunk?: string; timestamp?: number; error?: string; error_code?: string };

function bodyOf(data: string): Body {
  try {
    const body: unknown = JSON.parse(data);
    if (isObject(body)) return body as Body;
  } catch {
    // Told below.
  }
  throw badAnswer("an event of the stream is not an object");
}

const BY_CODE: Record<string, new (facts: ErrorFacts) => SandbankError> = {
  COMMAND_TIMEOUT: Timeout,
  SESSION_CRASHED: Gone,
  SESSION_DESTROYED: Gone,
  SESSION_EXPIRED: Gone,
};

/** The same classes as where the answer itself is the error. */
function failure(code: string, message: string): SandbankError {
  return new (BY_CODE[code] ?? StreamError)({ code, message, status: 200 });
}
