// When a request is tried again, and how long to wait before.
//
// Only what cannot happen twice is repeated: reading, and starts that carry an id of ours.

import { ConnectionFailed, SandbankError } from "./errors.js";

export interface RetryOptions {
  /** Tries in all, the first included; 1 switches retries off. */
  attempts: number;
  /** The first pause; each further one is twice as long. */
  baseMs: number;
  /** The longest pause. A server that asks for a longer one is not asked again. */
  capMs: number;
}

export const DEFAULT_RETRY: RetryOptions = { attempts: 9, baseMs: 100, capMs: 3_000 };

/** Counts tries in vain; whoever makes progress starts from the beginning. */
export class Retries {
  #failed = 0;

  constructor(
    private readonly options: RetryOptions,
    private readonly signal: AbortSignal | undefined,
  ) {}

  progress(): void {
    this.#failed = 0;
  }

  /** Waits before the next try, or throws the error when there is none. */
  async after(error: unknown): Promise<void> {
    this.#failed += 1;
    if (!mayPass(error) || this.#failed >= this.options.attempts) throw error;
    const asked = error.retryAfterMs ?? 0;
    if (asked > this.options.capMs) throw error;
    const pause = Math.min(this.options.baseMs * 2 ** (this.#failed - 1), this.options.capMs);
    // Many clients that were cut off together must not come back together.
    await sleep(Math.max(asked, pause * (0.5 + Math.random() / 2)), this.signal);
  }
}

/** A failed connection, or a server that asks to come again. */
function mayPass(error: unknown): error is SandbankError {
  if (error instanceof ConnectionFailed) return true;
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
