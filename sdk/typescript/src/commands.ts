// Programs in a sandbox: start, watch, feed, end.

import type { ByteSource } from "./bytes.js";
import { Ending, type WireEnding } from "./ending.js";
import { BadRequest, Gone, Timeout } from "./errors.js";
import { fedResult, orKilled } from "./fed.js";
import { followOutput, type OutputEvent, type StreamOptions } from "./output.js";
import { collect, type Result } from "./result.js";
import { Stdin } from "./stdin.js";
import type { Transport } from "./transport.js";
import { uniqueId } from "./unique.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];
type WireCommand = Schemas["Command"];

/** How a command stands. Times are Unix times in milliseconds. */
export type CommandInfo = Omit<WireCommand, "ending"> & { ending: Ending | null };

export interface StartOptions {
  /** Absolute, or relative to the workspace, which is the default. */
  cwd?: string;
  /** Added to the sandbox's environment. */
  env?: Record<string, string>;
  /** The command and what it left behind are killed after this long; by default never. */
  timeoutMs?: number;
  /** Lets the command be fed with `write` until `closeStdin`; else its input is empty. */
  stdin?: boolean;
  /** Your own id: starting the same id again finds the first one. By default a random one. */
  id?: string;
  signal?: AbortSignal;
}

export interface RunOptions extends Omit<StartOptions, "stdin" | "id"> {
  /** The command's whole input. */
  stdin?: ByteSource;
  /** Throw `CommandFailed` unless the exit code is 0. */
  check?: boolean;
}

/** A line for `bash -lc`, or a program with its arguments, which no shell looks at. */
export type CommandLine = string | readonly string[];

/** @internal */
export function argvOf(command: CommandLine): string[] {
  return typeof command === "string" ? ["bash", "-lc", command] : [...command];
}

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
    const result = await this.launchFed({ argv: argvOf(command) }, rest, stdin);
    if (check) result.check();
    return result;
  }

  /** Starts a command and leaves it to itself; it outlives this program and the server. */
  async start(command: CommandLine, options: StartOptions = {}): Promise<Command> {
    return this.launch({ argv: argvOf(command) }, options);
  }

  /** @internal */
  async launch(what: Partial<Schemas["StartBody"]>, options: StartOptions): Promise<Command> {
    const { id, signal, stdin, timeoutMs, ...rest } = options;
    if (timeoutMs !== undefined && !(timeoutMs > 0)) {
      throw new BadRequest({ code: "bad_timeout", message: "a timeout is a positive number, or left out for no limit" });
    }
    const limits = timeoutMs === undefined ? {} : { timeoutMs: Math.max(1, Math.round(timeoutMs)) };
    // The id makes a repeated start find the first one, so it may be repeated.
    const json = { ...rest, ...limits, ...(stdin ? { stdin: "open" } : {}), ...what, commandId: id ?? uniqueId() };
    const call = { json, repeatable: true, signal };
    const reply = await this.transport.json<Schemas["StartReply"]>("POST", this.path, call);
    const warnings = this.transport.warned(reply.warnings);
    return this.#command(reply.commandId, reply.attached ? undefined : 0, warnings);
  }

  /** @internal Starts, feeds and waits; who gives up meanwhile leaves nothing behind. */
  async launchFed(what: Partial<Schemas["StartBody"]>, options: Omit<StartOptions, "stdin" | "id">, stdin?: ByteSource): Promise<Result> {
    const id = uniqueId();
    return orKilled(this.#command(id), options.signal, async () => {
      const started = await this.launch(what, { ...options, id, stdin: stdin !== undefined });
      return fedResult(started, stdin, options.signal);
    });
  }

  /** @internal */
  status(id: string): Promise<CommandInfo> {
    return this.#command(id).status();
  }

  /** A command that was started before, by whomever. */
  async get(id: string): Promise<Command> {
    const command = this.#command(id);
    await command.status();
    return command;
  }

  /** Every command the sandbox still knows, oldest first. */
  async list(): Promise<CommandInfo[]> {
    return (await this.transport.json<{ commands: WireCommand[] }>("GET", this.path)).commands.map(commandInfo);
  }

  #command(id: string, stdinOffset?: number, warnings: readonly string[] = []): Command {
    return new Command(this.transport, `${this.path}/${encodeURIComponent(id)}`, id, stdinOffset, warnings);
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
    stdinOffset: number | undefined,
    /** What of the start had no effect, each with what to do; `onWarning` was told. */
    readonly warnings: readonly string[],
  ) {
    this.#stdin = new Stdin(transport, path, stdinOffset);
  }

  async status(): Promise<CommandInfo> {
    return commandInfo(await this.transport.json<WireCommand>("GET", this.path));
  }

  /**
   * Waits for the ending and gives it with all output that the server has kept. `Timeout` after
   * `timeoutMs`, however often the connection broke; the command then runs on.
   */
  async wait(timeoutMs?: number, signal?: AbortSignal): Promise<Result> {
    const stop = new AbortController();
    const forward = () => stop.abort(signal?.reason);
    if (signal?.aborted) forward();
    signal?.addEventListener("abort", forward, { once: true });
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => stop.abort(overtime()), timeoutMs);
    try {
      return await collect(this.id, this.stream({ signal: stop.signal }));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", forward);
    }
  }

  /**
   * Everything it wrote and writes, and at last its ending.
   *
   * A connection that breaks is made again, from the last byte that was seen: none is lost and
   * none comes twice. It throws only when the server stays away. When the sandbox ends meanwhile,
   * the ending is `lost`.
   */
  stream(options: StreamOptions = {}): AsyncGenerator<OutputEvent, void, undefined> {
    return followOutput(this.transport, `${this.path}/logs`, options);
  }

  [Symbol.asyncIterator](): AsyncGenerator<OutputEvent, void, undefined> {
    return this.stream();
  }

  /**
   * Sends input, in order and each byte once, to a command started with `stdin: true` or on a
   * terminal. There can be one writer at a time: `Conflict` where somebody else's input is found
   * in place of this one, which the server cannot always tell.
   */
  write(data: ByteSource): Promise<void> {
    return this.#stdin.write(data, false);
  }

  /** Ends the input, as Ctrl-D does on a terminal. */
  closeStdin(): Promise<void> {
    return this.#stdin.write("", true);
  }

  /** @internal All of the input; a command that wants no more of it, like `head`, is no failure. */
  async feed(data: ByteSource, signal?: AbortSignal): Promise<void> {
    try {
      await this.#stdin.write(data, true, signal);
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
    }
  }

  /** Asks it to end, with TERM. True also for one that has ended. */
  async kill(timeoutMs?: number): Promise<void> {
    await this.transport.json("POST", `${this.path}:kill`, { timeoutMs });
  }

  /** `tree` includes what the command left behind in other process groups. */
  async signal(signal: string | number, options: { tree?: boolean; timeoutMs?: number } = {}): Promise<void> {
    const { tree = false, timeoutMs } = options;
    await this.transport.json("POST", `${this.path}/signal`, { json: { signal, tree }, timeoutMs });
  }

  /** Changes the size of its terminal. */
  async resize(rows: number, cols: number): Promise<void> {
    await this.transport.json("POST", `${this.path}/resize`, { json: { rows, cols } });
  }
}

function overtime(): Timeout {
  return new Timeout({ code: "timeout", message: "the time to wait is over", hint: "what was waited for goes on" });
}

function commandInfo(wire: WireCommand): CommandInfo {
  return { ...wire, ending: wire.ending ? new Ending(wire.ending as unknown as WireEnding) : null };
}
