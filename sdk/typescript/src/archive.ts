// Directories as tar archives. The server has no route for them: a `tar` in the sandbox unpacks
// from its stdin, and packs into a file of the workspace, because output of a command is kept only
// in part, a file whole.

import type { ByteSource } from "./bytes.js";
import type { Commands } from "./commands.js";
import type { Files } from "./files.js";
import { uniqueId } from "./unique.js";

export async function extractArchive(commands: Commands, tar: ByteSource, path: string): Promise<void> {
  await commands.run(["tar", "-xf", "-", "--no-same-owner"], { cwd: path, stdin: tar, check: true });
}

export async function* packArchive(files: Files, commands: Commands, path: string): AsyncGenerator<Uint8Array, void, undefined> {
  // There before `tar` starts, because `tar` complains about directories that change.
  const directory = `.sandbank-${uniqueId()}`;
  const file = `${directory}/archive.tar`;
  await files.makeOurs(directory);
  try {
    await commands.run(["tar", "-cf", file, `--exclude=${directory}`, "-C", path, "."], { check: true });
    yield* files.pieces(file);
  } finally {
    await files.removeOurs(directory);
  }
}
