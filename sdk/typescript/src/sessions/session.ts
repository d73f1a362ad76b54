// One session: a shell with files.

import { bytesOf, fromBase64, textOf, toBase64, type Bytes } from "../bytes.js";
import { asyncDispose } from "../dispose.js";
import { SandbankError } from "../errors.js";
import type { Transport } from "../transport.js";
import { readExecStream, type StreamEvent } from "./exec_stream.js";
import { execResult, sessionInfo } from "./types.js";
import type { ExecResult, ReadResult, SessionInfo, SessionStats, WireExec, WireSession } from "./types.js";

export interface ExecOptions {
  /** How long the command may take, 30 000 by default; 0 and what is above the server's own limit mean that limit. */
  timeoutMs?: number;
  /** Terminal codes and carriage returns stay in the output. */
  rawOutput?: boolean;
  signal?: AbortSignal;
}

const EXEC_TIMEOUT_MS = 30_000;
/** The longest that any server lets a command run; 0 asks for the server's own limit. */
const LONGEST_EXEC_MS = 600_000;
/** For the way there and back, beside the command's own time. */
const EXEC_MARGIN_MS = 30_000;

/** Made by `SandboxClient`; `await using` destroys it at the end of the block. */
export class Session {
  readonly #path: string;

  /** @internal */
  constructor(
    private readonly transport: Transport,
    readonly id: string,
    /** Of one from `createSession`: `pool` when it was kept ready, `cold` when it was made then; else null. */
    readonly acquireSource: string | null = null,
  ) {
    this.#path = `/v1/sessions/${encodeURIComponent(id)}`;
  }

  /**
   * Runs a command in the session's shell, which remembers its directory and variables. Commands
   * of one session take turns; 30 s for that are the most this client waits beside the command's
   * own time. Never repeated.
   */
  async exec(cmd: string, options: ExecOptions = {}): Promise<ExecResult> {
    const { timeoutMs = EXEC_TIMEOUT_MS, signal } = options;
    const call = { json: body(cmd, options), timeoutMs: (timeoutMs || LONGEST_EXEC_MS) + EXEC_MARGIN_MS, signal };
    return execResult(await this.transport.json<WireExec>("POST", `${this.#path}/exec`, call));
  }

  /** The same with its output as it comes. Out of time is a `Timeout` here, too; a cut is `ConnectionFailed`. */
  async *execStream(cmd: string, options: ExecOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const call = { json: body(cmd, options), signal: options.signal };
    yield* readExecStream(await this.transport.open(`${this.#path}/exec/stream`, call));
  }

  async write(path: string, content: Bytes): Promise<void> {
    const json = { path, content_base64: toBase64(bytesOf(content)) };
    await this.transport.json("POST", `${this.#path}/fs/write`, { json });
  }

  async writeText(path: string, text: string): Promise<void> {
    await this.write(path, text);
  }

  async read(path: string, options: { maxBytes?: number } = {}): Promise<ReadResult> {
    type Wire = { path?: string; content_base64?: string; truncated?: boolean };
    const query = { path, max_bytes: options.maxBytes };
    const wire = await this.transport.json<Wire>("GET", `${this.#path}/fs/read`, { query });
    return { content: fromBase64(wire.content_base64 ?? ""), path: wire.path ?? path, truncated: wire.truncated ?? false };
  }

  /** The whole file as UTF-8; fails where only a part would come. */
  async readText(path: string): Promise<string> {
    const { content, truncated } = await this.read(path);
    if (truncated) throw new SandbankError({ code: "truncated", message: `${path} is longer than the server sends at once` });
    return textOf(content);
  }

  /** Puts a file into the directory `destPath`; tells where it is now. */
  async upload(file: Bytes | Blob, destPath = "/workspace", filename?: string): Promise<string[]> {
    const name = filename ?? (file instanceof Blob && "name" in file ? String(file.name) : "upload");
    const form = new FormData();
    form.set("path", destPath);
    form.set("file", file instanceof Blob ? file : new Blob([bytesOf(file)]), name);
    return (await this.transport.json<{ paths?: string[] }>("POST", `${this.#path}/fs/upload`, { body: form })).paths ?? [];
  }

  async stats(): Promise<SessionStats> {
    type Wire = { memory_bytes?: number; memory_limit?: number; cpu_usage_usec?: number };
    const wire = await this.transport.json<Wire>("GET", `${this.#path}/stats`);
    return {
      memoryBytes: wire.memory_bytes ?? 0,
      memoryLimit: wire.memory_limit ?? null,
      cpuUsageUsec: wire.cpu_usage_usec ?? 0,
    };
  }

  async info(): Promise<SessionInfo> {
    const info = sessionInfo(await this.transport.json<WireSession>("GET", this.#path));
    // The server says it only once.
    return { ...info, acquireSource: info.acquireSource ?? this.acquireSource };
  }

  async destroy(): Promise<void> {
    await this.transport.json("DELETE", this.#path);
  }

  async [asyncDispose](): Promise<void> {
    await this.destroy();
  }
}

function body(cmd: string, options: ExecOptions): Record<string, unknown> {
  return { cmd, timeout_ms: options.timeoutMs ?? EXEC_TIMEOUT_MS, ...(options.rawOutput ? { raw_output: true } : {}) };
}
