// What every runtime must do, written without any runtime's own things. It runs through a network
// that fails; whoever calls it checks what it says.

import { ConnectionFailed, NotFound, Sandbank, type OutputEvent } from "sandbank";

export async function smoke(url: string, token: string): Promise<string> {
  const client = new Sandbank({ url, token, retry: { attempts: 20, firstPauseMs: 5, longestPauseMs: 500 } });
  const sandbox = await client.sandboxes.create({ network: "none" });
  try {
    await expect((await client.health()).ok, "health");
    const known = Uint8Array.from({ length: 1_000_000 }, (_, index) => (index * 7 + (index >> 8)) % 256);
    // Sent once and never again by itself, so it may fail in a network like this one.
    await persist(() => sandbox.files.write("known", known));
    await expect(same(await sandbox.files.read("known"), known), "a file through cuts");

    const events: OutputEvent[] = [];
    for await (const event of await sandbox.commands.start(["cat", "known"])) events.push(event);
    const parts = events.flatMap((event) => (event.type === "output" ? [event.data] : []));
    await expect(same(new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer()), known), "output through cuts");
    await expect(events.filter(({ type }) => type === "ending").length === 1, "one ending");

    const fed = await sandbox.commands.run("cat; exit 3", { stdin: "h\u00e9llo" });
    await expect(fed.stdout === "h\u00e9llo" && fed.exitCode === 3, "input, output and exit code");
    await expect((await sandbox.shell().run("cd /tmp; pwd")).cwd === "/tmp", "a shell");
    await persist(() => sandbox.files.write("streamed", new Blob(["from a stream"]).stream()));
    await expect((await sandbox.files.readText("streamed")) === "from a stream", "a streamed upload");
    const missing = await sandbox.files.read("nothing").catch((error: unknown) => error);
    await expect(missing instanceof NotFound && missing.code === "not_found" && Boolean(missing.requestId), "an error");
    return "smoke: all is well";
  } finally {
    await persist(() => sandbox.stop());
  }
}

async function persist<T>(action: () => Promise<T>): Promise<T> {
  for (let left = 20; ; left -= 1) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof ConnectionFailed) || left === 0) throw error;
    }
  }
}

async function expect(holds: boolean, what: string): Promise<void> {
  if (!holds) throw new Error(`smoke failed: ${what}`);
}

function same(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
