// Runs every test against one server, which it starts and ends where SANDBANK_URL names none.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { OwnServer } from "./server.js";

const own = process.env.SANDBANK_URL ? undefined : await OwnServer.start();
const here = new URL(".", import.meta.url);
const tests = readdirSync(here).filter((name) => name.endsWith(".test.js"));
const chosen = process.argv[2] ? tests.filter((name) => name.includes(process.argv[2] ?? "")) : tests;
const server = own ? { SANDBANK_URL: own.url, SANDBANK_TOKEN: own.token } : {};
try {
  const child = spawn(process.execPath, ["--test", "--test-reporter=spec", ...chosen], {
    cwd: here,
    env: { ...process.env, ...server },
    stdio: "inherit",
  });
  const [code] = (await once(child, "exit")) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  await own?.close();
}
