// Finding the server of this machine as the command line does, for Node, Bun and Deno.
//
// A token is only sent where its data directory says that the server is: the holder of the
// directory's lock wrote the address there itself. Elsewhere only `SANDBANK_TOKEN` is used.

import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Sandbank, baseUrl, environment, type SandbankOptions } from "./client.js";

export interface ConnectOptions extends SandbankOptions {
  /** The server's; by default `SANDBANK_DATA_DIR`, or the usual one. */
  dataDir?: string;
}

/**
 * A client for the server that runs on this machine, with its token, or for `SANDBANK_URL` and
 * `SANDBANK_TOKEN`.
 *
 * ```ts
 * import { connect } from "sandbank/node";
 *
 * const client = await connect();
 * ```
 */
export async function connect(options: ConnectOptions = {}): Promise<Sandbank> {
  const { dataDir = usualDataDir(), ...rest } = options;
  const announced = await announcedUrl(dataDir);
  const url = rest.url ?? environment("SANDBANK_URL") ?? announced;
  let token = rest.token ?? environment("SANDBANK_TOKEN");
  if (token === undefined && url !== undefined && announced !== undefined && isSameServer(url, announced)) {
    token = await tokenOf(dataDir);
  }
  return new Sandbank({ ...rest, ...(url === undefined ? {} : { url }), ...(token === undefined ? {} : { token }) });
}

function usualDataDir(): string {
  const asRoot = process.getuid?.() === 0;
  return environment("SANDBANK_DATA_DIR") ?? (asRoot ? "/var/lib/sandbank" : join(homedir(), ".local/share/sandbank"));
}

/** Where the server that holds the data directory listens; none when nobody holds it. */
async function announcedUrl(dataDir: string): Promise<string | undefined> {
  const lock = join(dataDir, "lock");
  try {
    const said = (await readFile(lock, "utf8")).trim();
    return said.startsWith("http://") && (await isHeld(lock)) ? said : undefined;
  } catch {
    return undefined;
  }
}

/** Node cannot ask for a lock, but the kernel lists who has one: "1: FLOCK ADVISORY WRITE 7 fe:01:99 0 EOF". */
async function isHeld(lock: string): Promise<boolean> {
  const { ino } = await stat(lock, { bigint: true });
  const locks = (await readFile("/proc/locks", "utf8")).split("\n").map((line) => line.trim().split(/\s+/));
  return locks.some((words) => words[1] === "FLOCK" && words[3] === "WRITE" && words[5]?.split(":").at(-1) === String(ino));
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

function isSameServer(url: string, announced: string): boolean {
  const [named, said] = [new URL(baseUrl(url)), new URL(announced)];
  return LOOPBACK.test(named.hostname) && named.protocol === said.protocol && named.port === said.port;
}

/** Refused where others could have read or written it, as the command line does. */
async function tokenOf(dataDir: string): Promise<string> {
  const path = join(dataDir, "token");
  const { mode, uid } = await stat(path);
  if ((mode & 0o077) !== 0) throw new Error(`the token file ${path} can be read by others; run: chmod 600 ${path}`);
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error(`the token file ${path} belongs to another user (uid ${uid})`);
  return (await readFile(path, "utf8")).trim();
}
