// Finding the server of this machine as the command line does, for Node, Bun and Deno.
//
// A token is only sent where its data directory says that the server is: the holder of the
// directory's lock wrote the address there itself. Elsewhere only `SANDBANK_TOKEN` is used.

import { constants } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Sandbank, baseUrl, environment, type SandbankOptions } from "./client.js";
import { SandbankError } from "./errors.js";

export interface ConnectOptions extends SandbankOptions {
  /** The server's; by default `SANDBANK_DATA_DIR`, or the usual one. */
  dataDir?: string;
}

/**
 * A client for the server that runs on this machine, with its token, or for `SANDBANK_URL` and
 * `SANDBANK_TOKEN`. Where there is no token it goes on without one.
 *
 * ```ts
 * import { connect } from "sandbank/node";
 *
 * const client = await connect();
 * ```
 */
export async function connect(options: ConnectOptions = {}): Promise<Sandbank> {
  const { dataDir = usualDataDir(), ...rest } = options;
  const token = rest.token ?? environment("SANDBANK_TOKEN");
  const url = rest.url ?? environment("SANDBANK_URL");
  if (url !== undefined && token !== undefined) return new Sandbank({ ...rest, url, token });
  const announced = await announcedUrl(dataDir);
  const chosen = url ?? announced;
  if (token === undefined && chosen !== undefined && announced !== undefined && isAnnounced(chosen, announced)) {
    const found = await tokenOf(dataDir);
    // By the address itself: a name may mean something else to the next resolver.
    if (found !== undefined) return new Sandbank({ ...rest, url: announced, token: found });
  }
  return new Sandbank({ ...rest, ...(chosen === undefined ? {} : { url: chosen }), ...(token === undefined ? {} : { token }) });
}

function usualDataDir(): string {
  const chosen = environment("SANDBANK_DATA_DIR");
  if (chosen !== undefined) return chosen;
  if (process.geteuid?.() === 0) return "/var/lib/sandbank";
  return join(environment("XDG_DATA_HOME") ?? join(homedir(), ".local/share"), "sandbank");
}

/** Where the server that holds the data directory listens; none when nobody holds it. */
async function announcedUrl(dataDir: string): Promise<string | undefined> {
  const lock = join(dataDir, "lock");
  try {
    const said = (await readFile(lock, "utf8")).trim();
    return said.startsWith("http://") && URL.canParse(said) && (await isHeld(lock)) ? said : undefined;
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

const LOOPBACK = /^(127(\.\d+){3}|\[::1\])$/;

/** The same address and port, on this machine; `localhost` will do because it is not dialled by that name. */
function isAnnounced(url: string, announced: string): boolean {
  const [named, said] = [new URL(baseUrl(url)), new URL(announced)];
  if (!LOOPBACK.test(said.hostname) || named.protocol !== said.protocol || named.port !== said.port) return false;
  return named.pathname === "/" && (named.hostname === said.hostname || named.hostname === "localhost");
}

/** None where there is none to read. Refused where others could have read or written it, as the command line does. */
async function tokenOf(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, "token");
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const facts = await file.stat();
    if (!facts.isFile()) return undefined;
    const own = process.geteuid?.();
    if (own !== undefined && facts.uid !== own) throw unsafe(`the token file ${path} belongs to another user (uid ${facts.uid})`);
    if ((facts.mode & 0o077) !== 0) throw unsafe(`the token file ${path} can be read by others`, `run: chmod 600 ${path}`);
    return (await file.readFile("utf8")).trim() || undefined;
  } finally {
    await file.close();
  }
}

function unsafe(message: string, hint?: string): SandbankError {
  return new SandbankError({ code: "token_file_unsafe", message, hint });
}
