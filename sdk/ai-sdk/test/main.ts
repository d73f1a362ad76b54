// Runs every test against one server with tools, which it starts and ends.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { OwnServer } from "./server.js";
import { toolServer } from "./tool_server.js";

const own: OwnServer = await toolServer("access = 'localhost'");
const here = new URL(".", import.meta.url);
const tests = readdirSync(here).filter((name) => name.endsWith(".test.js") && name.includes(process.argv[2] ?? ""));
try {
  const child = spawn(process.execPath, ["--test", "--test-reporter=spec", ...tests], {
    cwd: here,
    env: { ...process.env, SANDBANK_URL: own.url, SANDBANK_TOKEN: own.token },
    stdio: "inherit",
  });
  const [code] = (await once(child, "exit")) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  await own.close();
}
