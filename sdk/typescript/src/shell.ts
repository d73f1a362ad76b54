// A shell that remembers: directory, variables, functions and jobs of one script are there for
// the next.

import type { ByteSource } from "./bytes.js";
import type { Command, Commands, StartOptions } from "./commands.js";
import { CommandFailed } from "./errors.js";
import { fedResult, fedStream } from "./fed.js";
import type { OutputEvent } from "./output.js";
import type { Result } from "./result.js";

export interface ScriptOptions {
  timeoutMs?: number;
  stdin?: ByteSource;
  /** Errors come in the stream of the output, in the order they were written. */
  merged?: boolean;
  /** Throw `CommandFailed` unless the exit code is 0. */
  check?: boolean;
  signal?: AbortSignal;
}

export interface ShellResult extends Result {
  /** Where the shell is now; null when the script ended the shell itself. */
  cwd: string | null;
  /** The shell before it had died: directory and exported variables are kept, all else is gone. */
  restarted: boolean;
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
    const command = await this.#start(script, options);
    const result = await fedResult(command, options.stdin, options.signal);
    if (options.check && !result.ok) throw new CommandFailed(result);
    const { shell } = await command.status();
    return { ...result, cwd: shell?.cwd ?? null, restarted: shell?.restarted ?? false };
  }

  /** The script's output as it comes; leaving the loop leaves the script running. */
  async *stream(script: string, options: Omit<ScriptOptions, "check"> = {}): AsyncGenerator<OutputEvent, void, undefined> {
    const command = await this.#start(script, options);
    yield* fedStream(command, options.stdin, options.signal);
  }

  #start(script: string, options: ScriptOptions): Promise<Command> {
    const { timeoutMs, merged, stdin, signal } = options;
    const start: StartOptions = {
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(stdin === undefined ? {} : { stdin: "open" }),
      ...(signal ? { signal } : {}),
    };
    return this.commands.launch({ shell: this.name, script, ...(merged ? { merged } : {}) }, start);
  }
}
