// The real server that tests talk to: the one of SANDBANK_URL and SANDBANK_TOKEN, or one started
// from the program SANDBANK_BIN.

import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbank } from "sandbank";

export interface Server {
  url: string;
  token: string;
}

export const SERVER_PROGRAM = process.env.SANDBANK_BIN;

/** For tests that stop, restart or configure the server. */
export class OwnServer implements Server {
  url = "";
  token = "";
  readonly dataDir = mkdtempSync(join(tmpdir(), "sandbank-sdk-"));
  // Other servers on this machine have networks, too.
  readonly #subnet = `10.${randomInt(64, 208)}.${randomInt(0, 16) * 16}.0/20`;
  #process: ChildProcess | undefined;

  private constructor(
    private readonly program: string,
    private readonly settings: readonly string[],
  ) {}

  static async start(...settings: string[]): Promise<OwnServer> {
    if (!SERVER_PROGRAM) throw new Error("SANDBANK_BIN names no server");
    const server = new OwnServer(SERVER_PROGRAM, settings);
    await server.start();
    return server;
  }

  /** At the same address as before. */
  async start(): Promise<void> {
    const log = openSync(join(this.dataDir, "server.log"), "a");
    const port = this.url ? new URL(this.url).port : "0";
    const settings = ["--data-dir", this.dataDir, "--port", port, "--network-subnet", this.#subnet];
    const fixed = ["--storage", "plain", "--pool-size", "0", "--log-format", "json"];
    const child = spawn(this.program, ["serve", ...settings, ...fixed, ...this.settings], { stdio: ["ignore", log, log] });
    closeSync(log);
    this.#process = child;
    await until("the server is ready", () => {
      if (child.exitCode !== null) throw new Error(`the server ended:\n${this.log()}`);
      const lock = join(this.dataDir, "lock");
      const said = existsSync(lock) ? readFileSync(lock, "utf8").trim() : "";
      this.url = said.startsWith("http://") ? said : this.url;
      return said.startsWith("http://") && this.log().split('"ready"').length > this.#starts;
    });
    this.#starts += 1;
    this.token = readFileSync(join(this.dataDir, "token"), "utf8").trim();
  }
  #starts = 1;

  log(): string {
    return readFileSync(join(this.dataDir, "server.log"), "utf8");
  }

  /** Sandboxes stay. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  async close(): Promise<void> {
    if (this.#process) {
      const client = new Sandbank(this);
      for (const sandbox of await client.sandboxes.list()) await sandbox.stop();
      await this.kill("SIGTERM");
    }
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

/** The server that `main.ts` prepared for all tests. */
export function theServer(): Server {
  const { SANDBANK_URL: url, SANDBANK_TOKEN: token } = process.env;
  if (!url || !token) throw new Error("SANDBANK_URL and SANDBANK_TOKEN name no server");
  return { url, token };
}

const PATIENCE_MS = 30_000;

export async function until(what: string, done: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
