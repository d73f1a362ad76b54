// What a request that `fetch` could not bring through means.

import { ConnectionFailed, NO_SERVER } from "./errors.js";

/**
 * Whether a client has ever met its server.
 *
 * A refused connection means that nobody listens. To a client that was answered before, that is a
 * server which is being started again, and worth waiting for; to a new one it is a wrong address or
 * a server that was never started, and is told at once.
 */
export class Reach {
  #met = false;

  constructor(private readonly url: string) {}

  met(): void {
    this.#met = true;
  }

  failure(error: unknown): ConnectionFailed {
    const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = inner instanceof Error ? inner.message || codeOf(inner) || inner.name : String(inner);
    if (!this.#met && isRefusal(error)) {
      const message = `no server at ${this.url}: start it with \`sandbank serve\`, or set SANDBANK_URL to where it is (${why})`;
      return new ConnectionFailed({ code: NO_SERVER, message, retryable: true, cause: error });
    }
    // `fetch` does not say whether a connection was made and then broke; it may have been.
    this.#met = true;
    const message = `the connection to ${this.url} failed: ${why}`;
    return new ConnectionFailed({ code: "connection_failed", message, retryable: true, cause: error });
  }
}

/** Whether every address that was tried refused; a name may have several. Browsers do not tell. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { errors } = error as { errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isRefusal);
  // Node and Bun say the first, earlier Buns the second; Deno has only words.
  if (["ECONNREFUSED", "ConnectionRefused"].includes(codeOf(error))) return true;
  return isRefusal(error.cause) || /connection refused/i.test(error.message);
}

function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}
