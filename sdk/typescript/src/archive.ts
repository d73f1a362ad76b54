// Directories as tar archives. The server has no route for them: a `tar` in the sandbox packs to
// its stdout and unpacks from its stdin.

import type { ByteSource } from "./bytes.js";
import type { Commands } from "./commands.js";
import { CommandFailed, Conflict } from "./errors.js";
import { collect } from "./result.js";
import type { OutputEvent } from "./output.js";

export async function extractArchive(commands: Commands, tar: ByteSource, path: string): Promise<void> {
  await commands.run(["tar", "--extract", "--file=-", "--no-same-owner"], { cwd: path, stdin: tar, check: true });
}

export async function* packArchive(commands: Commands, path: string): AsyncGenerator<Uint8Array, void, undefined> {
  const command = await commands.start(["tar", "--create", "--file=-", "."], { cwd: path });
  // Not the archive itself: what is told when it fails.
  const rest: OutputEvent[] = [];
  let ended = false;
  try {
    for await (const event of command) {
      if (event.type === "output" && event.stream === "stdout") {
        yield event.data;
        continue;
      }
      if (event.type === "dropped") {
        const message = `${event.bytes} bytes of the archive were dropped because it was read too slowly`;
        throw new Conflict({ code: "output_dropped", message });
      }
      ended = event.type === "ending";
      rest.push(event);
    }
  } finally {
    if (!ended) command.kill().catch(() => undefined);
  }
  const result = await collect(command.id, iterate(rest));
  if (!result.ok) throw new CommandFailed(result);
}

async function* iterate(events: OutputEvent[]): AsyncGenerator<OutputEvent, void, undefined> {
  yield* events;
}
