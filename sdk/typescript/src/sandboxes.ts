// Sandboxes: make or find them, look at them, end them.

import { Commands } from "./commands.js";
import { asyncDispose } from "./dispose.js";
import { Files } from "./files.js";
import { Git } from "./git.js";
import { Ports } from "./ports.js";
import { Shell } from "./shell.js";
import { terminals, type Terminals } from "./terminal.js";
import { CREATE_MS, type Transport } from "./transport.js";
import { uniqueId } from "./unique.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];

/** Times are Unix times in milliseconds. */
export type SandboxInfo = Schemas["Sandbox"];
export type SandboxStats = Schemas["StatsView"];
export type PostMortem = Schemas["PostMortemView"];
export type Containment = Schemas["Containment"];

export interface CreateOptions {
  /** Your name for it: a live sandbox with this key is found again. By default a random one. */
  key?: string;
  /** What makes it, where the server has several engines: `native` or `docker`. */
  engine?: string;
  /** By default the one of the runtime's name, or the server's. */
  image?: string;
  /** `node24` or `python3.13`. */
  runtime?: string;
  /** A kept workspace by its name: made when it is not there, shared, and still there when the sandbox has ended. */
  workspace?: string;
  /** Base environment of every command. */
  env?: Record<string, string>;
  /** `default` reaches public addresses only, `none` nobody. */
  network?: "default" | "none";
  /** What it may use; the server has a default for each. */
  vcpus?: number;
  memoryMb?: number;
  diskMb?: number;
  pids?: number;
  tmpMb?: number;
  /** Ports that may be published, at most 4. */
  ports?: number[];
  /** It is stopped when nobody used it for this long. */
  idleTtlMs?: number;
  /** It is stopped after this long, whatever it does. */
  maxLifetimeMs?: number;
  /** Leave it running at the end of an `await using` block. */
  keep?: boolean;
  signal?: AbortSignal;
}

/** `client.sandboxes` */
export class Sandboxes {
  constructor(private readonly transport: Transport) {}

  /**
   * Makes a sandbox, or finds the live one with this `key`.
   *
   * ```ts
   * await using sandbox = await client.sandboxes.create({ network: "none" });
   * // stopped and deleted at the end of the block
   * ```
   */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const { key = uniqueId(), vcpus, memoryMb, diskMb, pids, tmpMb, network, keep, signal, ...rest } = options;
    const resources = { vcpus, memoryMb, diskMb, pids, tmpMb };
    const json = {
      sessionKey: key,
      ...rest,
      ...(Object.values(resources).some((value) => value !== undefined) ? { resources } : {}),
      ...(network ? { network: { mode: network } } : {}),
    };
    // The key makes a repeated request find the first one's sandbox, so it may be repeated.
    const call = { json, repeatable: true, leastMs: CREATE_MS, signal };
    const reply = await this.transport.json<Schemas["CreateReply"]>("POST", "/v1/sandboxes", call);
    const { sandboxId, created, acquireSource } = reply;
    const warnings = this.transport.warned(reply.warnings);
    return new Sandbox(this.transport, sandboxId, { keep: keep ?? false, created, acquireSource: acquireSource ?? null, warnings });
  }

  /** One that was made before; also one that has ended, while its post-mortem is kept. */
  async get(id: string): Promise<Sandbox> {
    const sandbox = new Sandbox(this.transport, id, FOUND);
    await sandbox.refresh();
    return sandbox;
  }

  /** Every live sandbox; `info()` of each is already here. */
  async list(): Promise<Sandbox[]> {
    const { sandboxes } = await this.transport.json<Schemas["SandboxList"]>("GET", "/v1/sandboxes");
    return sandboxes.map((info) => new Sandbox(this.transport, info.id, FOUND, info));
  }
}

interface Origin {
  keep: boolean;
  created: boolean;
  acquireSource: "pool" | "cold" | null;
  warnings: readonly string[];
}

/** One that was found is nobody's to stop at the end of a block. */
const FOUND: Origin = { keep: true, created: false, acquireSource: null, warnings: [] };

/** An attack takes its time. */
const CONTAINMENT_MS = 120_000;

/** A machine with a workspace. */
export class Sandbox {
  readonly commands: Commands;
  readonly files: Files;
  /** The repository in the workspace. */
  readonly git: Git;
  readonly ports: Ports;
  /** Programs on a terminal: `await sandbox.terminal()`, `await sandbox.terminal.attach(id)`. */
  readonly terminal: Terminals;
  /** Whether the end of an `await using` block leaves it running; so for one that was found. */
  keep: boolean;
  /** False when a sandbox with this key was there already, and for one that was found. */
  readonly created: boolean;
  /** Of a new one: `pool` when its machine was ready, `cold` when it was made now; else null. */
  readonly acquireSource: "pool" | "cold" | null;
  /** What of the create had no effect, each with what to do; `onWarning` was told. */
  readonly warnings: readonly string[];
  readonly #path: string;
  #info: SandboxInfo | undefined;

  /** @internal */
  constructor(
    private readonly transport: Transport,
    readonly id: string,
    origin: Origin,
    info?: SandboxInfo,
  ) {
    this.keep = origin.keep;
    this.created = origin.created;
    this.acquireSource = origin.acquireSource;
    this.warnings = origin.warnings;
    this.#info = info;
    this.#path = `/v1/sandboxes/${encodeURIComponent(id)}`;
    this.commands = new Commands(transport, `${this.#path}/commands`);
    this.files = new Files(transport, this.#path, this.commands);
    this.git = new Git(transport, this.#path);
    this.ports = new Ports(transport, `${this.#path}/ports`);
    this.terminal = terminals(this.commands);
  }

  /** What is known of it, asked for once; `refresh` asks again. */
  async info(): Promise<SandboxInfo> {
    return this.#info ?? this.refresh();
  }

  async refresh(): Promise<SandboxInfo> {
    this.#info = await this.transport.json<SandboxInfo>("GET", this.#path);
    return this.#info;
  }

  /** A shell that remembers, by its name. Nothing is made before it is used. */
  shell(name = "main"): Shell {
    return new Shell(this.commands, name);
  }

  /** The URL of a port; short for `ports.publish`. */
  url(port: number): Promise<string> {
    return this.ports.publish(port);
  }

  /** Ends it and deletes its workspace. True also for one that has ended. */
  async stop(): Promise<void> {
    await this.transport.json("POST", `${this.#path}:stop`);
  }

  /** Stops every process where it stands; nothing is lost. */
  async pause(): Promise<void> {
    await this.transport.json("POST", `${this.#path}:pause`);
  }

  async resume(): Promise<void> {
    await this.transport.json("POST", `${this.#path}:resume`);
  }

  /** What it uses right now. */
  stats(): Promise<SandboxStats> {
    return this.transport.json("GET", `${this.#path}/stats`);
  }

  /** Why it ended and what it did last; `NotFound` while it lives. */
  postMortem(): Promise<PostMortem> {
    return this.transport.json("GET", `${this.#path}/post-mortem`);
  }

  /** Attacks it from inside and tells what held. Never repeated by itself. */
  containment(): Promise<Containment> {
    return this.transport.json("GET", `${this.#path}/containment`, { repeatable: false, timeoutMs: CONTAINMENT_MS });
  }

  async [asyncDispose](): Promise<void> {
    if (!this.keep) await this.stop();
  }
}
