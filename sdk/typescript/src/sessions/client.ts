// The way in to the sessions surface.

import { baseUrl, environment } from "../client.js";
import { BadRequest, Unauthorized } from "../errors.js";
import { DEFAULT_RETRY, type RetryOptions } from "../retry.js";
import { CREATE_MS, Transport } from "../transport.js";
import { Session } from "./session.js";
import { sessionInfo, type SessionInfo, type WireSession, type WorkspaceInfo } from "./types.js";

export interface SandboxClientOptions {
  /** By default `SANDBANK_URL`. */
  baseUrl?: string;
  /** By default `SANDKASTEN_API_KEY`, else `SANDBANK_TOKEN`. */
  apiKey?: string;
  /** For one call with all its tries, 120 000 by default; commands have the time they are given. */
  timeoutMs?: number;
  /** A stream without even a heartbeat, which comes every 15 s, is dead after this long. */
  silenceMs?: number;
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
const DEFAULT_SILENCE_MS = 45_000;

/**
 * A server's sessions.
 *
 * ```ts
 * const client = new SandboxClient(); // of SANDBANK_URL and SANDKASTEN_API_KEY
 * await using session = await client.createSession();
 * const { output, exitCode } = await session.exec("python3 --version");
 * ```
 */
export class SandboxClient {
  readonly #transport: Transport;

  constructor(options: SandboxClientOptions = {}) {
    const url = options.baseUrl || environment("SANDBANK_URL");
    if (!url) throw new BadRequest({ code: "bad_url", message: "no address of a server: pass baseUrl, or set SANDBANK_URL" });
    const token = options.apiKey || environment("SANDKASTEN_API_KEY") || environment("SANDBANK_TOKEN");
    if (!token) {
      throw new Unauthorized({
        code: "no_api_key",
        message: `no API key for the server at ${url}: pass apiKey, or set SANDKASTEN_API_KEY or SANDBANK_TOKEN`,
        hint: "the token is in the file `token` of the server's data directory",
      });
    }
    this.#transport = new Transport({
      url: baseUrl(url),
      token,
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      silenceMs: options.silenceMs ?? DEFAULT_SILENCE_MS,
      retry: { ...DEFAULT_RETRY, ...options.retry },
    });
  }

  /** Never repeated by itself. */
  async createSession(options: CreateSessionOptions = {}): Promise<Session> {
    const json = {
      image: options.image ?? "python",
      ...(options.ttlSeconds === undefined ? {} : { ttl_seconds: options.ttlSeconds }),
      ...(options.workspaceId === undefined ? {} : { workspace_id: options.workspaceId }),
    };
    const { id, acquire_source } = await this.#transport.json<WireSession>("POST", "/v1/sessions", { json, leastMs: CREATE_MS });
    return new Session(this.#transport, id, acquire_source ?? null);
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
    type Wire = { workspaces: { id: string; bytes?: number }[] | null };
    const { workspaces } = await this.#transport.json<Wire>("GET", "/v1/workspaces");
    return (workspaces ?? []).map(({ id, bytes }) => ({ id, bytes: bytes ?? null }));
  }

  /** With everything in it. */
  async deleteWorkspace(id: string): Promise<void> {
    await this.#transport.json("DELETE", `/v1/workspaces/${encodeURIComponent(id)}`);
  }
}
