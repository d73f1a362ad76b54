/**
 * The tools of a Sandbank server for the AI SDK. Start at {@link sandbankTools}; a sandbox of your
 * own for the package `bash-tool` is in `@sandbank/ai-sdk/bash-tool`.
 *
 * @module
 */

export { SandbankToolError, type ToolErrorFacts } from "./error.js";
export { RUNNING, sandbankTools, type SandbankTools, type SandbankToolsOptions } from "./tools.js";
export type {
  Approval,
  BashInput,
  BashOutput,
  Noted,
  ReadFileInput,
  ReadFileOutput,
  SandboxUrlInput,
  SandboxUrlOutput,
  ToolName,
  ToolTypes,
  WriteFileInput,
  WriteFileOutput,
} from "./types.js";
