// What is below a directory, and searches in it: answers of lines, the last of which is the end.
//
// A search cannot be resumed, because nobody keeps what it has found: one that breaks off is
// `ConnectionFailed`, and an answer without its end is never taken for a whole one.

import { ConnectionFailed, badAnswer, isObject } from "./errors.js";
import { Lines } from "./lines.js";
import type { Call, Transport } from "./transport.js";

export type FileKind = "file" | "directory" | "symlink" | "other";

/** What is somewhere below a directory. `size` and what follows only with `stat`. */
export interface TreeEntry {
  path: string;
  kind: FileKind;
  /** The exact bytes where the path is not UTF-8. */
  pathHex?: string;
  size?: number;
  mode?: number;
  modifiedMs?: number;
  /** Of a symbolic link. */
  target?: string;
}

/** `truncated` when there is more than is told, with the `reason`; `unreadable` counts directories. */
export type Tree = TreeEntry[] & { truncated: boolean; reason: string | null; unreadable: number };

export interface TreeOptions {
  /** Levels told, 20 by default. */
  depth?: number;
  /** Entries told, 10 000 by default. */
  nodes?: number;
  /** 5 s by default. */
  timeoutMs?: number;
  /** Also sizes, modes, times and targets. */
  stat?: boolean;
  /** Also names that begin with a dot; true by default. */
  hidden?: boolean;
  /** Each directory's entries by name. */
  sort?: boolean;
  signal?: AbortSignal;
}

interface SearchOptions {
  /** Where; the whole workspace by default. */
  path?: string;
  case?: "sensitive" | "insensitive" | "smart";
  limit?: number;
  /** 30 s by default. */
  timeoutMs?: number;
  /** Also what begins with a dot. */
  hidden?: boolean;
  /** Also what ignore-files exclude. */
  ignored?: boolean;
  /** As they are found, by default, or by path, which takes longer. */
  sort?: "found" | "path";
  signal?: AbortSignal;
}

export interface NameSearchOptions extends SearchOptions {
  /** A part of the name, by default. */
  kind?: "text" | "glob" | "regex";
  depth?: number;
}

export interface TextSearchOptions extends SearchOptions {
  /** The pattern is the text itself. */
  literal?: boolean;
  word?: boolean;
  multiline?: boolean;
  globs?: string[];
  types?: string[];
  /** Lines of context. */
  before?: number;
  after?: number;
  maxPerFile?: number;
}

export interface FoundName {
  type: "entry";
  path: string;
  kind: FileKind;
  pathHex?: string;
}

/** The last of a search for names; `reason` when it was cut. */
export interface NamesEnd {
  type: "end";
  matches: number;
  nodes: number;
  unreadable: number;
  truncated: boolean;
  reason: string | null;
  elapsedMs: number;
}

/** A line with a match, or one of its context; `ranges` are bytes of the line. */
export interface FoundLine {
  type: "match" | "context";
  path: string;
  pathHex?: string;
  line: number;
  offset: number;
  text: string;
  ranges: [number, number][];
  moreRanges?: boolean;
  /** Where `text` begins in a line that was cut, and how long that is. */
  textAt?: number;
  cut?: number;
  /** Some bytes of it are no UTF-8. */
  lossy?: boolean;
}

/** The last of a search for text; `reason` when it was cut. */
export interface TextEnd {
  type: "end";
  matches: number;
  filesSearched: number;
  filesMatched: number;
  skipped: { binary: number; tooLarge: number; unreadable: number; special: number; links: number };
  bytes: number;
  truncated: boolean;
  reason: string | null;
  elapsedMs: number;
}

const SEARCH_MS = 30_000;
/** How much longer than a search its connection may be silent: one that finds nothing says nothing. */
const GRACE_MS = 30_000;

type Fields = Record<string, unknown>;

export async function tree(transport: Transport, sandboxPath: string, path: string, options: TreeOptions): Promise<Tree> {
  const { timeoutMs, signal, ...rest } = options;
  const call: Call = { query: { path, ...rest, timeMs: timeoutMs }, signal };
  const retries = transport.retries(signal, transport.options.timeoutMs);
  for (;;) {
    try {
      const entries: TreeEntry[] = [];
      for await (const record of records(transport, `${sandboxPath}/files:tree`, call)) {
        const { end } = record;
        if (!isObject(end)) entries.push(record as unknown as TreeEntry);
        else return Object.assign(entries, { reason: null, ...end }) as Tree;
      }
    } catch (error) {
      await retries.after(error);
    }
  }
}

export async function* searchNames(
  transport: Transport,
  sandboxPath: string,
  pattern: string,
  options: NameSearchOptions,
): AsyncGenerator<FoundName | NamesEnd, void, undefined> {
  const { timeoutMs, signal, ...rest } = options;
  const call = { query: { pattern, ...rest, timeMs: timeoutMs }, signal, silenceMs: silenceOf(timeoutMs) };
  for await (const record of records(transport, `${sandboxPath}/search:names`, call)) {
    if (isObject(record.end)) yield { type: "end", ...record.end } as unknown as NamesEnd;
    else yield { type: "entry", ...record } as unknown as FoundName;
  }
}

export async function* searchText(
  transport: Transport,
  sandboxPath: string,
  pattern: string,
  options: TextSearchOptions,
): AsyncGenerator<FoundLine | TextEnd, void, undefined> {
  const { timeoutMs, signal, ...rest } = options;
  const call = { json: { pattern, ...rest, timeMs: timeoutMs }, signal, silenceMs: silenceOf(timeoutMs) };
  for await (const record of records(transport, `${sandboxPath}/search:text`, call)) {
    if (isObject(record.end)) yield { type: "end", ...record.end } as unknown as TextEnd;
    else if (isObject(record.context)) yield { type: "context", ranges: [], ...record.context } as unknown as FoundLine;
    else if (isObject(record.match)) yield { type: "match", ranges: [], ...record.match } as unknown as FoundLine;
    else throw badAnswer("a line is neither a match nor the end");
  }
}

function silenceOf(timeoutMs: number | undefined): number {
  return (timeoutMs ?? SEARCH_MS) + GRACE_MS;
}

/** Every line of one answer, to its end, which is the last; one without it broke off. */
async function* records(transport: Transport, path: string, call: Call): AsyncGenerator<Fields, void, undefined> {
  const stream = await transport.open(path, call);
  const lines = new Lines();
  for await (const piece of stream.pieces()) {
    for (const line of lines.feed(piece)) {
      const record = objectOf(line);
      yield record;
      if (isObject(record.end)) return;
    }
  }
  throw new ConnectionFailed({ code: "connection_failed", message: "the answer broke off before its end", retryable: true });
}

function objectOf(line: string): Fields {
  try {
    const record: unknown = JSON.parse(line);
    if (isObject(record)) return record as Fields;
  } catch {
    // Told below.
  }
  throw badAnswer("a line is no JSON object");
}
