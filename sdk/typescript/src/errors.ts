// Every error of the SDK: a class to catch, a stable `code` to test, and what to do next.

import type { Result } from "./result.js";

/** The code where nobody listens at the address, and this client has not met anybody there before. */
export const NO_SERVER = "no_server";

/** What is known of a failure, wherever it came from. */
export interface ErrorFacts {
  /** Stable; test this one instead of the message. */
  code: string;
  message: string;
  /** What to do next. */
  hint?: string | undefined;
  /** HTTP status; none where no answer came. */
  status?: number | undefined;
  /** Whether the same request may succeed later, unchanged. */
  retryable?: boolean | undefined;
  /** How long the server asks to wait. */
  retryAfterMs?: number | undefined;
  /** The same id is in the server's log. */
  requestId?: string | undefined;
  details?: Record<string, unknown> | undefined;
  cause?: unknown;
}

/**
 * The base of all errors that this SDK makes.
 *
 * ```ts
 * try {
 *   await sandbox.files.read("missing");
 * } catch (error) {
 *   if (error instanceof NotFound) return null;
 *   throw error;
 * }
 * ```
 */
export class SandbankError extends Error {
  readonly code: string;
  readonly hint: string | undefined;
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;
  readonly details: Record<string, unknown>;

  constructor(facts: ErrorFacts) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = facts.code;
    this.hint = facts.hint;
    this.status = facts.status;
    this.retryable = facts.retryable ?? false;
    this.retryAfterMs = facts.retryAfterMs;
    this.requestId = facts.requestId;
    this.details = facts.details ?? {};
  }
}

/** Nothing has this id, path or port. */
export class NotFound extends SandbankError {}
/** It was there and has ended: `details.cause` says why, and `sandbox.postMortem()` says more. */
export class Gone extends NotFound {}
/** It cannot be done as things stand, such as a command in a paused sandbox. */
export class Conflict extends SandbankError {}
/** The request makes no sense to the server; the same one never will. */
export class BadRequest extends SandbankError {}
/** No token, or one that is not valid here. */
export class Unauthorized extends SandbankError {}
/** The token's scope is too small, or a web page may not call this server. */
export class Forbidden extends SandbankError {}
/** Too many requests or commands; `retryAfterMs` says when to come again. */
export class TooMany extends SandbankError {}
/** The server has as many sandboxes as it may have. */
export class AtLimit extends TooMany {}
/** No answer in the time that was given. What was asked for may still happen. */
export class Timeout extends SandbankError {}
/** The server, or the sandbox behind it, cannot do its work now. */
export class Unavailable extends SandbankError {}
/** The connection could not be made, or broke. What was asked for may have happened. */
export class ConnectionFailed extends SandbankError {}

/** With `check: true`: the command ended otherwise than with exit code 0. */
export class CommandFailed extends SandbankError {
  readonly result: Result;

  constructor(result: Result) {
    const last = result.stderr.trimEnd().split("\n").at(-1);
    super({ code: "command_failed", message: `the command ${result.ending.describe()}${last ? `: ${last}` : ""}` });
    this.result = result;
  }
}

type ErrorClass = new (facts: ErrorFacts) => SandbankError;

const BY_CODE: Record<string, ErrorClass> = { at_limit: AtLimit, closed: Gone, gone: Gone, sandbox_gone: Gone };

const BY_STATUS: Record<number, ErrorClass> = {
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  408: Timeout,
  409: Conflict,
  410: Gone,
  429: TooMany,
  502: Unavailable,
  503: Unavailable,
  504: Timeout,
  507: Unavailable,
};

/** The error for an answer of the server. */
export function errorFor(facts: ErrorFacts & { status: number }): SandbankError {
  const usual = facts.status >= 500 ? SandbankError : BadRequest;
  const Class = BY_CODE[facts.code] ?? BY_STATUS[facts.status] ?? usual;
  return new Class(facts);
}

/** For an answer that says nothing we understand. */
export function badAnswer(message: string, status?: number): SandbankError {
  const hint = "is this a Sandbank server, and of a version that this package knows?";
  return new SandbankError({ code: "bad_answer", message, hint, status });
}

/** Reads an answer that is no success; never fails itself. */
export async function errorOf(response: Response): Promise<SandbankError> {
  const body = await bodyOf(response);
  const text = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : undefined);
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  const { status } = response;
  const details = isObject(body.details) ? body.details : {};
  return errorFor({
    status,
    code: text("code") ?? text("error_code") ?? `http_${status}`,
    message: text("error") ?? text("message") ?? `the server answered ${status}`,
    hint: text("hint") ?? (typeof details.hint === "string" ? details.hint : undefined),
    // An answer that does not say comes from something before the server.
    retryable: typeof body.retryable === "boolean" ? body.retryable : status === 503 || status === 429,
    retryAfterMs: Number.isFinite(after) ? Math.max(0, after * 1000) : undefined,
    requestId: text("requestId") ?? response.headers.get("x-request-id") ?? undefined,
    details,
  });
}

/** @internal */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function bodyOf(response: Response): Promise<Record<string, unknown>> {
  try {
    const body: unknown = await response.json();
    return isObject(body) ? body : {};
  } catch {
    return {};
  }
}
