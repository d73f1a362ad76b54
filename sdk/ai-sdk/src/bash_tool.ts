/**
 * A sandbox of the package `sandbank` as the package `bash-tool` wants one.
 *
 * @module
 */

/** What is needed of a `Sandbox` of the package `sandbank`. */
export interface SandbankSandbox {
  readonly commands: {
    start(command: string, options: { timeoutMs: number }): Promise<AsyncIterable<CommandEvent>>;
  };
  readonly files: {
    readText(path: string): Promise<string>;
    write(path: string, content: string | Uint8Array): Promise<unknown>;
  };
}

type CommandEvent =
  | { readonly type: "output"; readonly stream: "stdout" | "stderr" | "pty"; readonly text: string }
  | { readonly type: "dropped"; readonly droppedBytes: number }
  | { readonly type: "ending"; readonly ending: { readonly kind: string; describe(): string }; readonly exitCode: number | null };

/** The interface `Sandbox` of `bash-tool`. */
export interface BashToolSandbox {
  executeCommand(command: string): Promise<{ stdout: string; stderr: string; exitCode: number }>;
  readFile(path: string): Promise<string>;
  writeFiles(files: { path: string; content: string | Uint8Array }[]): Promise<void>;
}

export interface BashToolSandboxOptions {
  /** A command is killed with all that it started after this long; by default two minutes. */
  timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * Characters of each stream that are kept: the beginning, of which `bash-tool` shows its
 * `maxOutputLength`. A command that prints without end must not fill this program's memory.
 */
const MAX_KEPT_CHARS = 1 << 20;

/**
 * ```ts
 * await using sandbox = await client.sandboxes.create();
 * const { tools } = await createBashTool({ sandbox: bashToolSandbox(sandbox), destination: "/vercel/sandbox/workspace" });
 * ```
 */
export function bashToolSandbox(sandbox: SandbankSandbox, options: BashToolSandboxOptions = {}): BashToolSandbox {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  return {
    async executeCommand(command) {
      const stdout = new Kept("stdout");
      const stderr = new Kept("stderr");
      for await (const event of await sandbox.commands.start(command, { timeoutMs })) {
        if (event.type === "output") (event.stream === "stderr" ? stderr : stdout).push(event.text);
        else if (event.type === "dropped") stdout.push(`\n[${event.droppedBytes} bytes of output are lost]\n`);
        else if (event.exitCode === null) throw new Error(`the command ${event.ending.describe()}`);
        else return { stdout: stdout.text(), stderr: stderr.text(wordOf(event.ending, timeoutMs)), exitCode: event.exitCode };
      }
      throw new Error("the command's output has no ending");
    },
    readFile: (path) => sandbox.files.readText(path),
    async writeFiles(files) {
      for (const { path, content } of files) await sandbox.files.write(path, content);
    },
  };
}

/** What a model should know of a command that did not end by itself. */
function wordOf(ending: { kind: string; describe(): string }, timeoutMs: number): string | undefined {
  if (ending.kind === "exited") return undefined;
  return ending.kind === "timed_out" ? `Command timed out after ${timeoutMs}ms.` : `[the command ${ending.describe()}]`;
}

/** The beginning of a stream. */
class Kept {
  #text = "";
  #removed = 0;

  constructor(private readonly name: string) {}

  push(text: string): void {
    const room = MAX_KEPT_CHARS - this.#text.length;
    this.#text += text.slice(0, room);
    this.#removed += Math.max(0, text.length - room);
  }

  /** With `last` at the end. */
  text(last?: string): string {
    const cut = this.#removed > 0 ? `\n\n[${this.name} truncated: ${this.#removed} characters removed]` : "";
    const whole = this.#text + cut;
    if (last === undefined) return whole;
    return whole === "" || whole.endsWith("\n") ? whole + last : `${whole}\n${last}`;
  }
}
