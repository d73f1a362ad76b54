/**
 * Sandbank gives AI agents computers they may break. Start at {@link Sandbank}.
 *
 * @module
 */

export type { ByteSource, Bytes } from "./bytes.js";
export { Sandbank, type Doctor, type Health, type Image, type SandbankOptions } from "./client.js";
export { Command, type CommandInfo, type CommandLine, type Commands, type RunOptions, type StartOptions } from "./commands.js";
export { Ending, type EndingKind } from "./ending.js";
export {
  AtLimit,
  BadRequest,
  CommandFailed,
  Conflict,
  ConnectionFailed,
  Forbidden,
  Gone,
  NotFound,
  SandbankError,
  Timeout,
  TooMany,
  Unauthorized,
  Unavailable,
  type ErrorFacts,
} from "./errors.js";
export type { EventOptions, ServerEvent } from "./events.js";
export type { FileEntry, FileStat, Files } from "./files.js";
export type { Git, GitBranches, GitDiff, GitLog, GitPerson, GitShow, GitStatus } from "./git.js";
export { Output, type Dropped, type EndedEvent, type OutputEvent, type StreamOptions } from "./output.js";
export type { PortList, Ports, PublishedPort } from "./ports.js";
export { Result } from "./result.js";
export type { RetryOptions } from "./retry.js";
export {
  Sandbox,
  type Containment,
  type CreateOptions,
  type PostMortem,
  type SandboxInfo,
  type SandboxStats,
  type Sandboxes,
} from "./sandboxes.js";
export type {
  FileKind,
  FoundLine,
  FoundName,
  NameSearchOptions,
  NamesEnd,
  TextEnd,
  TextSearchOptions,
  Tree,
  TreeEntry,
  TreeOptions,
} from "./search.js";
export { Shell, ShellResult, type ScriptOptions } from "./shell.js";
export { Terminal, type TerminalOptions, type Terminals } from "./terminal.js";
export type { WatchEvent, WatchOptions } from "./watch.js";
export type { components as Wire } from "./wire.js";
