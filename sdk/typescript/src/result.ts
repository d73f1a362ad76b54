// A command's whole output with its ending.

import { joined, textOf } from "./bytes.js";
import type { Ended } from "./ending.js";
import type { OutputEvent } from "./output.js";

/** What a command did. */
export interface Result extends Ended {
  commandId: string;
  /** Whether it exited with 0. */
  ok: boolean;
  /** As UTF-8. */
  stdout: string;
  stderr: string;
  /** Both in the order they came in; all there is of a command on a terminal, or a merged script. */
  output: string;
  /** Exactly what was written. */
  stdoutBytes: Uint8Array;
  stderrBytes: Uint8Array;
  /** Output that the server no longer had when it was read; zeros mean that the result is whole. */
  dropped: { frames: number; bytes: number };
}

/** Reads a stream to its end. */
export async function collect(commandId: string, events: AsyncIterable<OutputEvent>): Promise<Result> {
  const parts: { stdout: Uint8Array[]; stderr: Uint8Array[]; all: Uint8Array[] } = { stdout: [], stderr: [], all: [] };
  const dropped = { frames: 0, bytes: 0 };
  for await (const event of events) {
    if (event.type === "output") {
      parts.all.push(event.data);
      parts[event.stream === "stderr" ? "stderr" : "stdout"].push(event.data);
    } else if (event.type === "dropped") {
      dropped.frames += event.frames;
      dropped.bytes += event.bytes;
    } else {
      const [stdoutBytes, stderrBytes] = [joined(parts.stdout), joined(parts.stderr)];
      const { exitCode, ending } = event;
      return {
        commandId,
        exitCode,
        ending,
        ok: exitCode === 0,
        stdout: textOf(stdoutBytes),
        stderr: textOf(stderrBytes),
        output: textOf(joined(parts.all)),
        stdoutBytes,
        stderrBytes,
        dropped,
      };
    }
  }
  throw new Error("a stream of output ends with the ending");
}
