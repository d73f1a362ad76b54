// A command's output while its input is being sent: a program may read and write at the same time.

import type { ByteSource } from "./bytes.js";
import type { Command } from "./commands.js";
import type { OutputEvent } from "./output.js";
import { collect, type Result } from "./result.js";

/** Ending what nobody waits for any more must not keep its caller waiting for long. */
const KILL_MS = 5_000;

/**
 * Fails with the source of the input, and kills the command then: it must not go on with half of
 * its input. Stops sending when the reader leaves.
 */
export async function* fedStream(
  command: Command,
  stdin: ByteSource | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<OutputEvent, void, undefined> {
  const stop = new AbortController();
  const forward = () => stop.abort(signal?.reason);
  if (signal?.aborted) forward();
  signal?.addEventListener("abort", forward, { once: true });
  let failed = false;
  if (stdin !== undefined) {
    command.feed(stdin, stop.signal).catch((error: unknown) => {
      failed = !stop.signal.aborted;
      stop.abort(error);
    });
  }
  try {
    yield* command.stream({ signal: stop.signal });
  } finally {
    signal?.removeEventListener("abort", forward);
    stop.abort();
    if (failed) await command.signal("KILL", { tree: true, timeoutMs: KILL_MS }).catch(() => undefined);
  }
}

/** The whole output. A caller that gives up does not leave the command behind. */
export async function fedResult(
  command: Command,
  stdin: ByteSource | undefined,
  signal: AbortSignal | undefined,
): Promise<Result> {
  return collect(command.id, fedStream(command, stdin, signal));
}

/** Sends TERM to a command whose caller gives up, also one whose start was not answered yet. */
export async function orKilled<T>(command: Command, signal: AbortSignal | undefined, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (signal?.aborted) await command.kill(KILL_MS).catch(() => undefined);
    throw error;
  }
}
