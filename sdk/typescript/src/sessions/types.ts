// The sessions surface's data: snake_case on the wire, camelCase here.

export interface SessionInfo {
  id: string;
  image: string;
  /** `running`, `destroying`, `destroyed`, `expired` or `crashed`. */
  status: string;
  cwd: string;
  workspaceId: string | null;
  createdAt: Date;
  expiresAt: Date;
  lastActivity: Date | null;
  /** Only of a session from `createSession`: `pool` for one that was kept ready, else `cold`. */
  acquireSource: string | null;
}

export interface ExecResult {
  exitCode: number;
  /** Where the session's shell is now. */
  cwd: string;
  /** stdout and stderr, as they came. */
  output: string;
  /** There was more than the server sends at once. */
  truncated: boolean;
  durationMs: number;
}

export interface SessionStats {
  memoryBytes: number;
  memoryLimit: number | null;
  cpuUsageUsec: number;
}

export interface ReadResult {
  content: Uint8Array;
  path: string;
  /** The file is longer than `maxBytes`. */
  truncated: boolean;
}

export interface WorkspaceInfo {
  id: string;
  /** What it takes on disk. */
  bytes: number | null;
}

/** @internal */
export interface WireSession {
  id: string;
  image: string;
  status: string;
  cwd: string;
  workspace_id?: string;
  created_at: string;
  expires_at: string;
  last_activity?: string;
  acquire_source?: string;
}

/** @internal Zero values may be left out. */
export interface WireExec {
  exit_code?: number;
  cwd?: string;
  output?: string;
  truncated?: boolean;
  duration_ms?: number;
}

/** @internal */
export function sessionInfo(wire: WireSession): SessionInfo {
  return {
    id: wire.id,
    image: wire.image,
    status: wire.status,
    cwd: wire.cwd,
    workspaceId: wire.workspace_id ?? null,
    createdAt: new Date(wire.created_at),
    expiresAt: new Date(wire.expires_at),
    lastActivity: wire.last_activity === undefined ? null : new Date(wire.last_activity),
    acquireSource: wire.acquire_source ?? null,
  };
}

/** @internal */
export function execResult(wire: WireExec): ExecResult {
  return {
    exitCode: wire.exit_code ?? 0,
    cwd: wire.cwd ?? "",
    output: wire.output ?? "",
    truncated: wire.truncated ?? false,
    durationMs: wire.duration_ms ?? 0,
  };
}
