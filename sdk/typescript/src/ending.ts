// How a command ended.

export type EndingKind = "exited" | "signaled" | "timed_out" | "oom_killed" | "killed" | "lost";

/** @internal As the server says it. */
export interface WireEnding {
  kind: EndingKind;
  code?: number;
  signal?: number;
  by?: string;
  reason?: string;
}

/**
 * How a command ended, by its `kind`:
 *
 * - `exited`: by itself, with `code`
 * - `signaled`: of a `signal` that nobody sent through this API
 * - `timed_out`: it ran longer than its `timeoutMs` and was killed
 * - `oom_killed`: it used more memory than the sandbox has
 * - `killed`: by a caller with `signal`; the caller's token is named in `by`
 * - `lost`: nobody can say, for `reason`; for instance because the sandbox was stopped
 */
export class Ending {
  readonly kind: EndingKind;
  declare readonly code?: number;
  declare readonly signal?: number;
  declare readonly by?: string;
  declare readonly reason?: string;

  /** @internal */
  constructor(wire: WireEnding) {
    this.kind = wire.kind;
    const { code, signal, by, reason } = wire;
    // Only what belongs to the kind is there at all.
    Object.assign(this, Object.fromEntries(Object.entries({ code, signal, by, reason }).filter(([, value]) => value !== undefined)));
  }

  /** As a shell shows it: 124 for a timeout, 128 + n for a signal; null when it is `lost`. */
  get exitCode(): number | null {
    switch (this.kind) {
      case "exited":
        return this.code ?? null;
      case "signaled":
      case "killed":
        return 128 + (this.signal ?? 0);
      case "timed_out":
        return 124;
      case "oom_killed":
        return 137;
      default:
        return null;
    }
  }

  /** The rest of a sentence about the command: "exited with 0", "ran out of time". */
  describe(): string {
    switch (this.kind) {
      case "exited":
        return `exited with ${this.code}`;
      case "signaled":
        return `died of signal ${this.signal}`;
      case "killed":
        return `was killed by ${this.by} with signal ${this.signal}`;
      case "timed_out":
        return "ran out of time";
      case "oom_killed":
        return "ran out of memory";
      case "lost":
        return `is lost: ${this.reason}`;
      default:
        return String(this.kind);
    }
  }
}
