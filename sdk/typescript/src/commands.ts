// Programs in a sandbox: start, watch, feed, end.

import type { ByteSource } from "./bytes.js";
import { exitCodeOf, type Ended, type Ending } from "./ending.js";
import { CommandFailed } from "./errors.js";
import { fedResult } from "./fed.js";
import { followOutput, type OutputEvent, type StreamOptions } from "./output.js";
import { collect, type Result } from "./result.js";
import { Stdin } from "./stdin.js";
import type { Transport } from "./transport.js";
import { uniqueId } from "./unique.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];

/** How a command stands. Times are Unix times in milliseconds. */
export type CommandInfo = Omit<Schemas["Command"], "ending"> & { ending: Ending | null };

export interface StartOptions {
  /** Absolute, or relative to the workspace, which is the default. */
  cwd?: string;
  /** Added to the sandbox's environment. */
  env?: Record<string, string>;
  /** The command and what it left behind are killed after this long; by default never. */
  timeoutMs?: number;
  /** Lets the command be fed with `write` until `closeStdin`; else its input is empty. */
  stdin?: "open" | "null";
  /** Runs it on a terminal of this size; its output is then one stream, `pty`. */
  pty?: { rows: number; cols: number };
  /** Your own id: starting the same id again finds the first one. By default a random one. */
  id?: string;
  signal?: AbortSignal;
}

export interface RunOptions extends Omit<StartOptions, "stdin" | "pty"> {
  /** The command's whole input. */
  stdin?: ByteSource;
  /** Throw `CommandFailed` unless the exit code is 0. */
  check?: boolean;
}

/** A line for `bash -lc`, or a program with its arguments, which no shell looks at. */
export type CommandLine = string | readonly string[];

/** `sandbox.commands` */
export class Commands {
  constructor(
    private readonly transport: Transport,
    private readonly path: string,
  ) {}

  /**
   * Runs a command to its end.
   *
   * A failed command is a result, not an exception, unless `check` says so. When `signal` aborts,
   * the command is sent TERM.
   *
   * ```ts
   * const { stdout } = await sandbox.commands.run("sort | uniq -c", { stdin: "b\na\nb\n" });
   * await sandbox.commands.run(["git", "clone", url], { check: true, timeoutMs: 60_000 });
   * ```
   */
  async run(command: CommandLine, options: RunOptions = {}): Promise<Result> {
    const { stdin, check, ...rest } = options;
    const started = await this.start(command, { ...rest, ...(stdin === undefined ? {} : { stdin: "open" }) });
    const result = await fedResult(started, stdin, options.signal);
    if (check && !result.ok) throw new CommandFailed(result);
    return result;
  }

  /** Starts a command and leaves it to itself; it outlives this program and the server. */
  async start(command: CommandLine, options: StartOptions = {}): Promise<Command> {
    const argv = typeof command === "string" ? ["bash", "-lc", command] : [...command];
    return this.launch({ argv }, options);
  }

  /** @internal */
  async launch(what: Partial<Schemas["StartBody"]>, options: StartOptions): Promise<Command> {
    const { id, signal, ...rest } = options;
    // The id makes a repeated start find the first one, so it may be repeated.
    const json = { ...rest, ...what, commandId: id ?? uniqueId() };
    const call = { json, repeatable: true, signal };
    const { commandId } = await this.transport.json<Schemas["StartReply"]>("POST", this.path, call);
    return this.#command(commandId, id === undefined ? 0 : undefined);
  }

  /** A command that was started before, by whomever. */
  async get(id: string): Promise<Command> {
    const command = this.#command(id);
    await command.status();
    return command;
  }

  /** Every command the sandbox still knows, oldest first. */
  async list(): Promise<CommandInfo[]> {
    return (await this.transport.json<{ commands: CommandInfo[] }>("GET", this.path)).commands;
  }

  #command(id: string, stdinOffset?: number): Command {
    return new Command(this.transport, `${this.path}/${encodeURIComponent(id)}`, id, stdinOffset);
  }
}

/**
 * A program that was started. Iterate it for its output:
 *
 * ```ts
 * const command = await sandbox.commands.start("make");
 * for await (const event of command) {
 *   if (event.type === "output") process.stdout.write(event.data);
 * }
 * ```
 */
export class Command implements AsyncIterable<OutputEvent> {
  readonly #stdin: Stdin;

  /** @internal */
  constructor(
    private readonly transport: Transport,
    private readonly path: string,
    readonly id: string,
    stdinOffset?: number,
  ) {
    this.#stdin = new Stdin(transport, path, stdinOffset);
  }

  status(): Promise<CommandInfo> {
    return this.transport.json("GET", this.path);
  }

  /** The ending, however long it takes; `Timeout` after `timeoutMs`, and the command runs on. */
  async wait(timeoutMs = 0, signal?: AbortSignal): Promise<Ended> {
    const { ending } = await this.transport.json<{ ending: Ending }>("GET", `${this.path}/wait`, { timeoutMs, signal });
    return { ending, exitCode: exitCodeOf(ending) };
  }

  /**
   * Everything it wrote and writes, and at last its ending.
   *
   * A connection that breaks is made again, from the last byte that was seen: none is lost and
   * none comes twice. It throws only when the server stays away, or the sandbox is gone.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<OutputEvent, void, undefined> {
    return followOutput(this.transport, `${this.path}/logs`, options);
  }

  [Symbol.asyncIterator](): AsyncGenerator<OutputEvent, void, undefined> {
    return this.stream();
  }

  /** The whole output, once it has ended. */
  result(options: StreamOptions = {}): Promise<Result> {
    return collect(this.id, this.stream(options));
  }

  /**
   * Sends input, in order and each byte once, to a command started with `stdin: "open"` or a
   * `pty`. There can be one writer at a time: `Conflict` where somebody else's input is found in
   * place of this one, which the server cannot always tell.
   */
  write(data: ByteSource): Promise<void> {
    return this.#stdin.write(data, false);
  }

  /** Ends the input, as Ctrl-D does on a terminal. */
  closeStdin(): Promise<void> {
    return this.#stdin.write("", true);
  }

  /** @internal All of the input; a command that ends before it has read it is no failure. */
  async feed(data: ByteSource, signal?: AbortSignal): Promise<void> {
    try {
      await this.#stdin.write(data, true, signal);
    } catch (error) {
      if ((error as { code?: string }).code !== "closed") throw error;
    }
  }

  /** Asks it to end, with TERM. True also for one that has ended. */
  async kill(): Promise<void> {
    await this.transport.json("POST", `${this.path}:kill`);
  }

  /** `tree` includes what the command left behind in other process groups. */
  signal(signal: string | number, options: { tree?: boolean } = {}): Promise<CommandInfo> {
    return this.transport.json("POST", `${this.path}/signal`, { json: { signal, ...options } });
  }

  /** Changes the size of its terminal. */
  resize(rows: number, cols: number): Promise<CommandInfo> {
    return this.transport.json("POST", `${this.path}/resize`, { json: { rows, cols } });
  }
}
