// A command's whole output with its ending.

import { joined, textOf } from "./bytes.js";
import type { Ending } from "./ending.js";
import { CommandFailed } from "./errors.js";
import type { Output, OutputEvent } from "./output.js";
import { badOutput } from "./record.js";

/** What a command did. */
export class Result {
  /** As a shell shows it: 124 for a timeout, 128 + n for a signal; null when the ending is `lost`. */
  readonly exitCode: number | null;
  /** Output that the server no longer had when it was read; 0 means that the result is whole. */
  readonly droppedBytes: number;
  readonly #bytes = new Map<string, Uint8Array>();

  /** @internal */
  constructor(
    readonly commandId: string,
    readonly ending: Ending,
    /** Everything that was written, piece by piece. */
    readonly events: readonly OutputEvent[],
  ) {
    this.exitCode = ending.exitCode;
    this.droppedBytes = events.reduce((sum, event) => sum + (event.type === "dropped" ? event.droppedBytes : 0), 0);
  }

  /** Whether it exited with 0. */
  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** As UTF-8; with what came on a terminal. */
  get stdout(): string {
    return textOf(this.stdoutBytes);
  }

  get stderr(): string {
    return textOf(this.stderrBytes);
  }

  /** Both in the order they came in. */
  get output(): string {
    return textOf(this.outputBytes);
  }

  get stdoutBytes(): Uint8Array {
    return this.#joined("stdout", ["stdout", "pty"]);
  }

  get stderrBytes(): Uint8Array {
    return this.#joined("stderr", ["stderr"]);
  }

  get outputBytes(): Uint8Array {
    return this.#joined("output", ["stdout", "stderr", "pty"]);
  }

  /** Throws `CommandFailed` unless the command exited with 0. */
  check(): void {
    if (!this.ok) throw new CommandFailed(this);
  }

  #joined(name: string, streams: Output["stream"][]): Uint8Array {
    const known = this.#bytes.get(name);
    if (known) return known;
    const parts = this.events.flatMap((event) => (event.type === "output" && streams.includes(event.stream) ? [event.data] : []));
    const bytes = joined(parts);
    this.#bytes.set(name, bytes);
    return bytes;
  }
}

/** Reads a stream to its end. */
export async function collect(commandId: string, events: AsyncIterable<OutputEvent>): Promise<Result> {
  const seen: OutputEvent[] = [];
  for await (const event of events) {
    seen.push(event);
    if (event.type === "ending") return new Result(commandId, event.ending, seen);
  }
  throw badOutput("the output has no ending");
}
