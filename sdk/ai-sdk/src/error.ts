// Why a call of a tool failed. The AI SDK shows the message to the model, as a `tool-error`.

/** What is known of a failure. */
export interface ToolErrorFacts {
  /** Stable; test this one instead of the message. */
  code: string;
  message: string;
  /** What to do next. */
  hint?: string | undefined;
  /** HTTP status; none where no answer came, or the call had begun: then `code` says it. */
  status?: number | undefined;
  /** Whether the same call may succeed later, unchanged. */
  retryable?: boolean | undefined;
  /** The same id is in the server's log. */
  requestId?: string | undefined;
  cause?: unknown;
}

export class SandbankToolError extends Error {
  override readonly name = "SandbankToolError";
  readonly code: string;
  readonly hint: string | undefined;
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly requestId: string | undefined;

  constructor(facts: ToolErrorFacts) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = facts.code;
    this.hint = facts.hint;
    this.status = facts.status;
    this.retryable = facts.retryable ?? false;
    this.requestId = facts.requestId;
  }
}

/** Reads an answer that is no success; never fails itself. */
export async function errorOf(response: Response): Promise<SandbankToolError> {
  const body: unknown = await response.json().catch(() => undefined);
  const fields = isObject(body) ? body : {};
  const text = (name: string) => (typeof fields[name] === "string" ? (fields[name] as string) : undefined);
  const { status } = response;
  return new SandbankToolError({
    status,
    code: text("code") ?? `http_${status}`,
    message: text("error") ?? `the server answered ${status}`,
    hint: text("hint"),
    retryable: fields.retryable === true,
    requestId: text("requestId") ?? response.headers.get("x-request-id") ?? undefined,
  });
}

/** For an answer that says nothing we understand. */
export function badAnswer(message: string): SandbankToolError {
  const hint = "is this a Sandbank server, and of a version that this package knows?";
  return new SandbankToolError({ code: "bad_answer", message, hint });
}

/** What it means that `fetch` failed, or that a stream broke. */
export function unreached(url: string, error: unknown): SandbankToolError {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code } = inner as { code?: unknown };
  const why = inner instanceof Error ? inner.message || String(code ?? inner.name) : String(inner);
  if (code === "ECONNREFUSED") {
    const message = `no server at ${url}: start it with \`sandbank serve\`, or set SANDBANK_URL to where it is (${why})`;
    return new SandbankToolError({ code: "no_server", message, retryable: true, cause: error });
  }
  const message = `the connection to ${url} failed: ${why}`;
  return new SandbankToolError({ code: "connection_failed", message, cause: error });
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
