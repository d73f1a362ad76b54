// The way in to the sessions surface.

import { baseUrl } from "../client.js";
import { DEFAULT_RETRY, type RetryOptions } from "../retry.js";
import { Transport } from "../transport.js";
import { Session } from "./session.js";
import { sessionInfo, type SessionInfo, type WireSession, type WorkspaceInfo } from "./types.js";

export interface SandboxClientOptions {
  baseUrl: string;
  apiKey: string;
  /** For one answer, 120 000 by default. */
  timeoutMs?: number;
  retry?: Partial<RetryOptions>;
  fetch?: typeof fetch;
}

export interface CreateSessionOptions {
  /** `python` by default. */
  image?: string;
  /** The session expires when it was not used for this long; by default the server's time. */
  ttlSeconds?: number;
  /** A workspace that outlives the session; made when it is first used. */
  workspaceId?: string;
}

const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * A server's sessions.
 *
 * ```ts
 * const client = new SandboxClient({ baseUrl, apiKey });
 * await using session = await client.createSession();
 * const { output, exitCode } = await session.exec("python3 --version");
 * ```
 */
export class SandboxClient {
  readonly #transport: Transport;

  constructor(options: SandboxClientOptions) {
    const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#transport = new Transport({
      url: baseUrl(options.baseUrl),
      token: options.apiKey,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      timeoutMs,
      // These streams have no heartbeat: a command may be silent for as long as it may run.
      silenceMs: 600_000 + timeoutMs,
      retry: { ...DEFAULT_RETRY, ...options.retry },
    });
  }

  async createSession(options: CreateSessionOptions = {}): Promise<Session> {
    const json = {
      image: options.image ?? "python",
      ...(options.ttlSeconds === undefined ? {} : { ttl_seconds: options.ttlSeconds }),
      ...(options.workspaceId === undefined ? {} : { workspace_id: options.workspaceId }),
    };
    const { id } = await this.#transport.json<WireSession>("POST", "/v1/sessions", { json });
    return new Session(this.#transport, id);
  }

  /** A session that was made before; fails when there is none with this id. */
  async getSession(id: string): Promise<Session> {
    const session = new Session(this.#transport, id);
    await session.info();
    return session;
  }

  /** Newest first. */
  async listSessions(): Promise<SessionInfo[]> {
    return (await this.#transport.json<WireSession[]>("GET", "/v1/sessions")).map(sessionInfo);
  }

  async listWorkspaces(): Promise<WorkspaceInfo[]> {
    return (await this.#transport.json<{ workspaces: WorkspaceInfo[] | null }>("GET", "/v1/workspaces")).workspaces ?? [];
  }

  /** With everything in it. */
  async deleteWorkspace(id: string): Promise<void> {
    await this.#transport.json("DELETE", `/v1/workspaces/${encodeURIComponent(id)}`);
  }
}
