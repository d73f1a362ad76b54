// A sandbox's workspace. Paths are below it: `a/b`, or absolute by any of its names, such as
// `/workspace/a/b`.

import { bytesOf, joined, piecesOf, streamOf, textOf, type ByteSource } from "./bytes.js";
import { extractArchive, packArchive } from "./archive.js";
import type { Commands } from "./commands.js";
import { download } from "./download.js";
import { NotFound } from "./errors.js";
import {
  searchNames,
  searchText,
  tree,
  type FoundLine,
  type FoundName,
  type NameSearchOptions,
  type NamesEnd,
  type TextEnd,
  type TextSearchOptions,
  type Tree,
  type TreeOptions,
} from "./search.js";
import type { Call, Transport } from "./transport.js";
import { watch, type WatchEvent, type WatchOptions } from "./watch.js";
import type { components } from "./wire.js";

type Schemas = components["schemas"];

export type FileStat = Omit<Schemas["FileStat"], "kind"> & { kind: "file" | "directory" | "symlink" | "other" };
export type FileEntry = FileStat & {
  name: string;
  /** The exact bytes where the name is not UTF-8. */
  nameHex?: string;
  /** Of a symbolic link. */
  target?: string;
};

/** `sandbox.files` */
export class Files {
  constructor(
    private readonly transport: Transport,
    private readonly sandboxPath: string,
    private readonly commands: Commands,
  ) {}

  async read(path: string): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const part of this.pieces(path)) parts.push(part);
    return joined(parts);
  }

  /** As UTF-8. */
  async readText(path: string): Promise<string> {
    return textOf(await this.read(path));
  }

  /**
   * A file of any size, piece by piece. A connection that breaks is made again from the last byte;
   * `Conflict` when the file was changed meanwhile.
   */
  stream(path: string, signal?: AbortSignal): ReadableStream<Uint8Array> {
    return streamOf(this.pieces(path, signal));
  }

  /** @internal */
  pieces(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    return download(this.transport, `${this.sandboxPath}/files`, path, signal);
  }

  /**
   * Writes a file, making missing directories. It is replaced as a whole once all of it is there,
   * so nobody sees half of it. Never tried again by itself.
   *
   * Browsers cannot send a stream over HTTP/1, so there it is read into memory before it is sent.
   */
  async write(path: string, content: ByteSource, options: { mode?: number; signal?: AbortSignal } = {}): Promise<FileStat> {
    const mode = options.mode?.toString(8);
    const call: Call = { query: { path, mode }, body: await bodyOf(content), timeoutMs: 0, signal: options.signal };
    call.headers = { "content-type": "application/octet-stream" };
    return this.transport.json("PUT", `${this.sandboxPath}/files`, call);
  }

  /**
   * What is in a directory, sorted by name; the workspace itself by default. `truncated` when there
   * is more than the server tells at once.
   */
  async list(path = "."): Promise<FileEntry[] & { truncated: boolean }> {
    type Reply = { entries: FileEntry[]; truncated: boolean };
    const { entries, truncated } = await this.transport.json<Reply>("GET", `${this.sandboxPath}/files:list`, { query: { path } });
    return Object.assign(entries, { truncated });
  }

  stat(path: string): Promise<FileStat> {
    return this.transport.json("GET", `${this.sandboxPath}/files:stat`, { query: { path } });
  }

  /** Also makes those above that are missing, and accepts one that is there, unless `parents` is false. */
  mkdir(path: string, options: { parents?: boolean } = {}): Promise<FileStat> {
    const { parents = true } = options;
    return this.transport.json("POST", `${this.sandboxPath}/files:mkdir`, { json: { path, parents } });
  }

  /** @internal A directory whose name nobody else uses: doing it twice is the same as once. */
  async makeOurs(path: string): Promise<void> {
    await this.transport.json("POST", `${this.sandboxPath}/files:mkdir`, { json: { path, parents: true }, repeatable: true });
  }

  /** @internal */
  async removeOurs(path: string): Promise<void> {
    try {
      await this.transport.json("DELETE", `${this.sandboxPath}/files`, { query: { path, recursive: true }, repeatable: true });
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
  }

  move(from: string, to: string, options: { overwrite?: boolean } = {}): Promise<FileStat> {
    return this.transport.json("POST", `${this.sandboxPath}/files:move`, { json: { from, to, ...options } });
  }

  /** `recursive` also removes a directory with everything in it. */
  async remove(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    await this.transport.json("DELETE", `${this.sandboxPath}/files`, { query: { path, ...options } });
  }

  /** Copies a file, a link or a whole tree, which appears when it is complete. */
  copy(from: string, to: string, options: { overwrite?: boolean } = {}): Promise<FileStat> {
    return this.transport.json("POST", `${this.sandboxPath}/files:copy`, { json: { from, to, ...options }, timeoutMs: 0 });
  }

  /** Sets permission bits, such as `0o644`; `recursive` also of all that is below, links excepted. */
  chmod(path: string, mode: number, options: { recursive?: boolean } = {}): Promise<FileStat> {
    const json = { path, mode: mode.toString(8).padStart(4, "0"), ...options };
    return this.transport.json("POST", `${this.sandboxPath}/files:chmod`, { json });
  }

  /** Everything below a directory, the workspace itself by default. */
  tree(path = ".", options: TreeOptions = {}): Promise<Tree> {
    return tree(this.transport, this.sandboxPath, path, options);
  }

  /** Files and directories by their names, as they are found; the last item is the end. */
  searchNames(pattern: string, options: NameSearchOptions = {}): AsyncGenerator<FoundName | NamesEnd, void, undefined> {
    return searchNames(this.transport, this.sandboxPath, pattern, options);
  }

  /** Lines that match a regular expression, as they are found; the last item is the end. */
  searchText(pattern: string, options: TextSearchOptions = {}): AsyncGenerator<FoundLine | TextEnd, void, undefined> {
    return searchText(this.transport, this.sandboxPath, pattern, options);
  }

  /**
   * What happens below a directory, until `end`; goes on after a cut without a gap. Begins with
   * `ready`: what was done before it is there already.
   */
  watch(path = ".", options: WatchOptions = {}): AsyncGenerator<WatchEvent, void, undefined> {
    return watch(this.transport, this.sandboxPath, path, options);
  }

  /** Unpacks an uncompressed tar archive into a directory, which is made if need be. The sandbox's own `tar` does it. */
  async uploadArchive(tar: ByteSource, path = "."): Promise<void> {
    if (path !== ".") await this.mkdir(path);
    await extractArchive(this.commands, tar, path);
  }

  /**
   * A directory as an uncompressed tar archive, made by the sandbox's own `tar`. The cost: the
   * whole archive is written into the workspace first and needs room there while it is read.
   * So it survives cuts as any file does.
   */
  downloadArchive(path = "."): ReadableStream<Uint8Array> {
    return streamOf(packArchive(this, this.commands, path));
  }
}

/** Pages and workers of a browser; Deno's workers look like them. */
const IN_BROWSER = "document" in globalThis || ("WorkerGlobalScope" in globalThis && !("Deno" in globalThis));

async function bodyOf(content: ByteSource): Promise<BodyInit> {
  if (typeof content === "string" || content instanceof Uint8Array || content instanceof ArrayBuffer) return bytesOf(content);
  if (content instanceof Blob) return content;
  const pieces = piecesOf(content, Number.MAX_SAFE_INTEGER);
  if (!IN_BROWSER) return streamOf(pieces);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of pieces) parts.push(piece);
  return new Blob(parts);
}
