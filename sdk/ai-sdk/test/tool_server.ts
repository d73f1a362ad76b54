// Servers with tools, each as its test wants it.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OwnServer } from "./server.js";

export const TIMEOUT_MS = 5_000;
export const MAX_STDOUT_CHARS = 2_000;

const LIMITS = `timeout_ms = ${TIMEOUT_MS}\nmax_stdout_chars = ${MAX_STDOUT_CHARS}\nmax_concurrent_sandboxes = 10`;

/** `keys` are further lines of `[app.bash_tools]`. */
export async function toolServer(keys: string, enabled = true, switchedOn = true): Promise<OwnServer> {
  const directory = mkdtempSync(join(tmpdir(), "sandbank-ai-sdk-config-"));
  const path = join(directory, "sandbank.toml");
  writeFileSync(path, `[app.bash_tools]\nenabled = ${enabled}\n${LIMITS}\n${keys}\n`);
  // The server inherits it.
  process.env.REMCOCHAT_ENABLE_BASH_TOOL = switchedOn ? "1" : "0";
  try {
    return await OwnServer.start("--config", path);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
