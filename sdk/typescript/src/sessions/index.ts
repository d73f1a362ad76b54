/**
 * The sessions surface: one shell per session, workspaces that outlive it. Start at
 * {@link SandboxClient}.
 *
 * @module
 */

export { SandboxClient, type CreateSessionOptions, type SandboxClientOptions } from "./client.js";
export { Session, type ExecOptions } from "./session.js";
export { StreamError, type StreamEvent } from "./exec_stream.js";
export type { ExecResult, ReadResult, SessionInfo, SessionStats, WorkspaceInfo } from "./types.js";
export { SandbankError } from "../errors.js";
