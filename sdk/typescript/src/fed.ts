// A command's output while its input is being sent: a program may read and write at the same time.

import type { ByteSource } from "./bytes.js";
import type { Command } from "./commands.js";
import { SandbankError } from "./errors.js";
import type { OutputEvent } from "./output.js";
import { collect, type Result } from "./result.js";

/** Fails with the source of the input; stops sending when the reader leaves. */
export async function* fedStream(
  command: Command,
  stdin: ByteSource | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<OutputEvent, void, undefined> {
  const stop = new AbortController();
  const forward = () => stop.abort(signal?.reason);
  if (signal?.aborted) forward();
  signal?.addEventListener("abort", forward, { once: true });
  if (stdin !== undefined) command.feed(stdin, stop.signal).catch((error: unknown) => stop.abort(error));
  try {
    yield* command.stream({ signal: stop.signal });
  } finally {
    signal?.removeEventListener("abort", forward);
    stop.abort();
  }
}

/** The whole output. A caller that gives up, or whose input fails, does not leave the command behind. */
export async function fedResult(
  command: Command,
  stdin: ByteSource | undefined,
  signal: AbortSignal | undefined,
): Promise<Result> {
  try {
    return await collect(command.id, fedStream(command, stdin, signal));
  } catch (error) {
    if (!(error instanceof SandbankError)) command.kill().catch(() => undefined);
    throw error;
  }
}
