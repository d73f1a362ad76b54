// How a command ended.

/**
 * - `exited`: by itself, with `code`
 * - `signaled`: of a signal that nobody sent through this API
 * - `timed_out`: it ran longer than its `timeoutMs` and was killed
 * - `oom_killed`: it used more memory than the sandbox has
 * - `killed`: by a caller, whose token is named in `by`
 * - `lost`: nobody can say, for instance because the sandbox was stopped
 */
export type Ending =
  | { kind: "exited"; code: number }
  | { kind: "signaled"; signal: number }
  | { kind: "timed_out" }
  | { kind: "oom_killed" }
  | { kind: "killed"; by: string; signal: number }
  | { kind: "lost"; reason: string };

/** That a command has ended, and how. */
export interface Ended {
  /** As a shell shows it: 124 for a timeout, 128 + n for a signal; null when the ending is `lost`. */
  exitCode: number | null;
  ending: Ending;
}

/** The code a shell would show. */
export function exitCodeOf(ending: Ending): number | null {
  switch (ending.kind) {
    case "exited":
      return ending.code;
    case "signaled":
    case "killed":
      return 128 + ending.signal;
    case "timed_out":
      return 124;
    case "oom_killed":
      return 137;
    default:
      return null;
  }
}
