// The same package in Node, Bun, Deno and a real browser, each through a network that fails.

import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CutProxy } from "./cut_proxy.js";
import { Random, SEED } from "./random.js";
import { OwnServer, SERVER_PROGRAM, theServer } from "./server.js";

const server = theServer();
const project = fileURLToPath(new URL("..", import.meta.url));
const main = fileURLToPath(new URL("smoke_main.js", import.meta.url));
const runtimes = join(project, "runtimes");
const BUN = join(runtimes, "node_modules/@oven/bun-linux-x64-baseline/bin/bun");
const DENO = join(runtimes, "node_modules/@deno/linux-x64-glibc/deno");
let failure = "";

before(() => {
  try {
    execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: runtimes, stdio: "pipe" });
  } catch (error) {
    failure = String((error as { stderr?: Buffer }).stderr ?? error).match(/npm error .*/)?.[0] ?? String(error);
  }
});

function without(program: string): string | undefined {
  return existsSync(program) ? undefined : `skipped: not installable here: ${failure || "npm has it not for this machine"}`;
}

async function shakyNetwork(url: string): Promise<CutProxy> {
  const proxy = await CutProxy.to(url);
  const random = new Random(SEED);
  proxy.behaviour.cutAfter = () => (random.below(4) > 0 ? 20_000 + random.below(700_000) : random.below(3_000));
  return proxy;
}

async function runs(program: string, args: string[]): Promise<void> {
  const proxy = await shakyNetwork(server.url);
  try {
    const env = { ...process.env, SANDBANK_URL: proxy.url };
    const { stdout } = await promisify(execFile)(program, [...args, main], { env, cwd: project, timeout: 90_000 });
    assert.equal(stdout.trim(), "smoke: all is well");
    assert.ok(proxy.cuts > 1, `only ${proxy.cuts} cuts`);
  } finally {
    await proxy.refuse();
  }
}

test("Node runs it", () => runs(process.execPath, []));

test("Bun runs it", async (context) => {
  const missing = without(BUN);
  if (missing) return context.skip(missing);
  await runs(BUN, ["run"]);
});

test("Deno runs it", async (context) => {
  const missing = without(DENO);
  if (missing) return context.skip(missing);
  await runs(DENO, ["run", "--quiet", "--allow-net", "--allow-env", "--allow-read"]);
});

const PAGE = `<!doctype html><script type="importmap">{"imports":{"sandbank":"/sandbank/index.js"}}</script>
<script type="module">
  const say = (text) => fetch("/say", { method: "POST", body: text });
  try {
    const { url, token } = await (await fetch("/server")).json();
    const { smoke } = await import("/smoke.js");
    await say(await smoke(url, token));
  } catch (error) {
    await say(String(error?.stack ?? error));
  }
</script>`;

/** A page of another origin, as a web application's would be; the server is told to allow it. */
test("a page in Chromium runs it from another origin", { timeout: 120_000 }, async (context) => {
  const browser = process.env.SANDBANK_TEST_CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(browser)) return context.skip(`skipped: there is no ${browser}`);
  if (!SERVER_PROGRAM) return context.skip("skipped: SANDBANK_BIN names no server that could allow the page's origin");
  const pages = createServer();
  pages.listen(0, "127.0.0.1");
  await once(pages, "listening");
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const own = await OwnServer.start("--allowed-origins", origin);
  const proxy = await shakyNetwork(own.url);
  const said = new Promise<string>((resolve) => {
    pages.on("request", (request, response) => {
      const path = request.url ?? "/";
      if (path === "/say") {
        let text = "";
        request.on("data", (part) => (text += part));
        request.on("end", () => {
          response.end();
          resolve(text);
        });
      } else if (path === "/server") {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ url: proxy.url, token: own.token }));
      } else if (path.endsWith(".js")) {
        const file = path.startsWith("/sandbank/") ? `node_modules/sandbank/dist/${path.slice(10)}` : `test${path}`;
        response.setHeader("content-type", "text/javascript");
        response.end(readFileSync(join(project, file)));
      } else {
        response.setHeader("content-type", "text/html");
        response.end(PAGE);
      }
    });
  });
  const profile = mkdtempSync(join(tmpdir(), "sandbank-sdk-browser-"));
  const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${profile}`];
  const child = spawn(browser, [...flags, origin], { stdio: "ignore" });
  const ended = once(child, "exit");
  try {
    const early = ended.then(([code]) => `the browser ended with ${code}`);
    assert.equal(await Promise.race([said, early]), "smoke: all is well");
    assert.ok(proxy.cuts > 1, `only ${proxy.cuts} cuts`);
  } finally {
    child.kill();
    await ended;
    pages.closeAllConnections();
    pages.close();
    await proxy.refuse();
    await own.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
