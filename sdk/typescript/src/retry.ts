// When a request is tried again, and how long to wait before.
//
// Only what cannot happen twice is repeated: reading, and starts that carry an id of ours.

import { ConnectionFailed, NO_SERVER, SandbankError } from "./errors.js";

export interface RetryOptions {
  /** Tries in all, the first included; 1 switches retries off. */
  attempts: number;
  /** The first pause; each further one is twice as long, and a random half is taken off. */
  firstPauseMs: number;
  /** The longest pause of our own. */
  longestPauseMs: number;
  /** What the server asks for comes on top; one that asks for more than this is not asked again. */
  longestRetryAfterMs: number;
}

export const DEFAULT_RETRY: RetryOptions = {
  attempts: 8,
  firstPauseMs: 100,
  longestPauseMs: 5_000,
  longestRetryAfterMs: 30_000,
};

/** Counts tries in vain; whoever makes progress starts from the beginning. One deadline for all of them. */
export class Retries {
  #failed = 0;
  readonly #deadline: number;

  /** `timeoutMs` 0 means without end. */
  constructor(
    private readonly options: RetryOptions,
    private readonly signal: AbortSignal | undefined,
    timeoutMs = 0,
  ) {
    this.#deadline = timeoutMs > 0 ? performance.now() + timeoutMs : Number.POSITIVE_INFINITY;
  }

  /** For the next try; 0 means without end. */
  leftMs(): number {
    return Number.isFinite(this.#deadline) ? Math.max(1, this.#deadline - performance.now()) : 0;
  }

  progress(): void {
    this.#failed = 0;
  }

  /** Waits before the next try, or throws the error when there is none. */
  async after(error: unknown): Promise<void> {
    this.#failed += 1;
    if (!mayPass(error) || this.#failed >= this.options.attempts) throw error;
    const asked = error.retryAfterMs ?? 0;
    if (asked > this.options.longestRetryAfterMs) throw error;
    const pause = Math.min(this.options.firstPauseMs * 2 ** (this.#failed - 1), this.options.longestPauseMs);
    // Many clients that were cut off together must not come back together.
    const wait = asked + pause * (0.5 + Math.random() / 2);
    if (performance.now() + wait >= this.#deadline) throw error;
    await sleep(wait, this.signal);
  }
}

/** A failed connection, or a server that asks to come again. */
function mayPass(error: unknown): error is SandbankError {
  // Nobody listens, and nobody ever did: only a person can change that.
  if (error instanceof ConnectionFailed) return error.code !== NO_SERVER;
  if (!(error instanceof SandbankError) || !error.retryable) return false;
  return error.status === 503 || error.status === 429;
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
