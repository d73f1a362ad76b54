// A shell that remembers: directory, variables, functions and jobs of one script are there for
// the next.

import type { ByteSource } from "./bytes.js";
import type { Command, CommandInfo, Commands } from "./commands.js";
import { SandbankError } from "./errors.js";
import { fedStream } from "./fed.js";
import type { OutputEvent } from "./output.js";
import { Result } from "./result.js";

export interface ScriptOptions {
  /** The script is killed after this long; by default never. */
  timeoutMs?: number;
  stdin?: ByteSource;
  /** Errors come in the stream of the output, in the order they were written. */
  merged?: boolean;
  /** Throw `CommandFailed` unless the exit code is 0. */
  check?: boolean;
  /** When it aborts, the script is sent TERM. */
  signal?: AbortSignal;
}

/** A script that has ended, and the shell it ran in. */
export class ShellResult extends Result {
  /** @internal */
  constructor(
    result: Result,
    /** Where the shell is now; null when the script ended the shell itself. */
    readonly cwd: string | null,
    /** The shell before it had died: directory and exported variables are kept, all else is gone. */
    readonly restarted: boolean,
  ) {
    super(result.commandId, result.ending, result.events);
  }
}

/**
 * One of a sandbox's shells, made when it is first used.
 *
 * ```ts
 * const shell = sandbox.shell();
 * await shell.run("cd /tmp; x=42");
 * (await shell.run("pwd; echo $x")).stdout; // "/tmp\n42\n"
 * ```
 */
export class Shell {
  /** @internal */
  constructor(
    private readonly commands: Commands,
    readonly name: string,
  ) {}

  /** Runs a script to its end. Scripts of one shell take turns. */
  async run(script: string, options: ScriptOptions = {}): Promise<ShellResult> {
    const { stdin, check, merged, ...rest } = options;
    const result = await this.commands.launchFed(this.#what(script, merged), rest, stdin);
    const shell = await this.#standing(result);
    const found = new ShellResult(result, shell?.cwd ?? null, shell?.restarted ?? false);
    if (check) found.check();
    return found;
  }

  /** The script's output as it comes, the ending last; leaving the loop leaves the script running. */
  async *stream(script: string, options: Omit<ScriptOptions, "check"> = {}): AsyncGenerator<OutputEvent, void, undefined> {
    const { stdin, ...rest } = options;
    const command = await this.start(script, { ...rest, stdin: stdin !== undefined });
    yield* fedStream(command, stdin, options.signal);
  }

  /** Starts a script as a `Command`, which can be watched, written to and killed. */
  start(script: string, options: Pick<ScriptOptions, "timeoutMs" | "merged" | "signal"> & { stdin?: boolean } = {}): Promise<Command> {
    const { merged, ...rest } = options;
    return this.commands.launch(this.#what(script, merged), rest);
  }

  #what(script: string, merged = false): { shell: string; script: string; merged: boolean } {
    return { shell: this.name, script, merged };
  }

  /** Where the shell is; not to be had when the sandbox has ended with the script. */
  async #standing(result: Result): Promise<CommandInfo["shell"]> {
    if (result.ending.kind === "lost") return null;
    try {
      return (await this.commands.status(result.commandId)).shell;
    } catch (error) {
      if (error instanceof SandbankError) return null;
      throw error;
    }
  }
}
