// A program on a terminal, for people and for programs that insist on one.

import type { ByteSource } from "./bytes.js";
import { argvOf, type Command, type CommandLine, type Commands } from "./commands.js";
import type { Result } from "./result.js";

export interface TerminalOptions {
  /** By default a login `bash`. */
  cmd?: CommandLine;
  rows?: number;
  cols?: number;
  cwd?: string;
  env?: Record<string, string>;
}

/** `sandbox.terminal` */
export interface Terminals {
  /** Starts a program on a new terminal. */
  (options?: TerminalOptions): Promise<Terminal>;
  /** A terminal that was left; `after` is the `seq` at which it was, else all that is kept comes. */
  attach(id: string, after?: number): Promise<Terminal>;
}

/** @internal */
export function terminals(commands: Commands): Terminals {
  const open = async (options: TerminalOptions = {}) => {
    const { cmd = ["bash", "-l"], rows = 24, cols = 80, ...rest } = options;
    return new Terminal(await commands.launch({ argv: argvOf(cmd), pty: { rows, cols } }, rest), 0);
  };
  const attach = async (id: string, after = 0) => new Terminal(await commands.get(id), after);
  return Object.assign(open, { attach });
}

/**
 * Iterate it for the bytes to show; the loop ends with the program or with `detach`.
 *
 * ```ts
 * const terminal = await sandbox.terminal({ rows: 40, cols: 120 });
 * await terminal.write("ls --color\nexit\n");
 * for await (const bytes of terminal) process.stdout.write(bytes);
 * ```
 */
export class Terminal implements AsyncIterable<Uint8Array> {
  #left = new AbortController();
  #seq: number;

  /** @internal */
  constructor(
    readonly command: Command,
    after: number,
  ) {
    this.#seq = after;
  }

  /** For `sandbox.terminal.attach`. */
  get id(): string {
    return this.command.id;
  }

  /** How far it was read. */
  get seq(): number {
    return this.#seq;
  }

  write(data: ByteSource): Promise<void> {
    return this.command.write(data);
  }

  async resize(rows: number, cols: number): Promise<void> {
    await this.command.resize(rows, cols);
  }

  /** What was not read yet, then what comes. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const { signal } = this.#left;
    try {
      for await (const event of this.command.stream({ after: this.#seq, signal })) {
        this.#seq = event.seq;
        if (event.type === "output") yield event.data;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Ends the loops that read it; the program goes on, and a later loop begins where they were. */
  detach(): void {
    this.#left.abort();
    this.#left = new AbortController();
  }

  /** Waits for the program's ending. */
  wait(timeoutMs?: number): Promise<Result> {
    return this.command.wait(timeoutMs);
  }

  /** Ends the program and all it started. KILL, because an interactive shell ignores TERM. */
  async kill(): Promise<void> {
    await this.command.signal("KILL", { tree: true });
  }
}
