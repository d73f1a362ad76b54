// The tool set of one conversation.

import { tool, type Tool } from "ai";
import { SandbankToolError, badAnswer, isObject } from "./error.js";
import { inputSchema } from "./schema.js";
import { Server, type Described } from "./server.js";
import type { ToolName, ToolTypes } from "./types.js";

/** The exit code of a command that runs, or waits for a person to allow it. */
export const RUNNING = -1;

const NAMES = ["bash", "readFile", "writeFile", "sandboxUrl"] as const satisfies readonly ToolName[];
const DEFAULT_URL = "http://127.0.0.1:8080";

export interface SandbankToolsOptions<NAME extends ToolName = ToolName> {
  /**
   * The conversation, such as `chat:42`. The same one has the same sandbox, also later, until nobody has
   * used it for the server's `idle_ttl_ms` or another conversation needs its place (the server has
   * `max_concurrent_sandboxes`, 2 by default). The next output then has a `notice`.
   */
  session: string;
  /** By default `SANDBANK_URL`, or `http://127.0.0.1:8080`. */
  baseUrl?: string;
  /**
   * By default `SANDBANK_TOKEN`, or `REMCOCHAT_ADMIN_TOKEN`. A server whose tools have
   * `access = "localhost"` needs none on its own machine.
   */
  token?: string;
  /** Only these; by default all. */
  tools?: readonly NAME[];
  /** Whether the sandbox is made while the model still thinks; by default it is. */
  prewarm?: boolean;
  /** Another `fetch`, for proxies, certificates or logging. */
  fetch?: typeof fetch;
}

export interface SandbankTools<NAME extends ToolName = ToolName> {
  /** For `streamText` and `generateText`. Empty where `enabled` is false, whatever its type says. */
  tools: { [KEY in NAME]: Tool<ToolTypes[KEY]["input"], ToolTypes[KEY]["output"]> };
  /** Whether there are tools for this caller. */
  enabled: boolean;
  /** Why not, for people. */
  reason: string | undefined;
  /** The same for programs, such as `tools_disabled`, `tools_not_for_you`, `unauthorized`, `no_server`. */
  code: string | undefined;
  /** Ends the conversation's sandbox with all that is in it; the next call has a new one. */
  reset(): Promise<void>;
}

/**
 * The tools that a server offers a conversation.
 *
 * Where the server has none for this caller, or is not there, the set is empty and `reason` says why:
 * a chat goes on without tools. What the caller got wrong is thrown as `SandbankToolError`.
 *
 * ```ts
 * const { tools } = await sandbankTools({ session: "chat:42" });
 * const result = streamText({ model, tools, stopWhen: stepCountIs(20), prompt });
 * ```
 */
export async function sandbankTools<const NAME extends ToolName = ToolName>(
  options: SandbankToolsOptions<NAME>,
): Promise<SandbankTools<NAME>> {
  const names = options.tools ?? (NAMES as readonly ToolName[] as readonly NAME[]);
  const server = new Server({
    url: baseUrl(options.baseUrl ?? environment("SANDBANK_URL") ?? DEFAULT_URL),
    token: (options.token ?? environment("SANDBANK_TOKEN") ?? environment("REMCOCHAT_ADMIN_TOKEN"))?.trim(),
    session: sessionName(options.session),
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
  });
  const reset = () => server.reset();
  const list = await server.list(options.prewarm ?? true).catch((error: unknown) => {
    if (!(error instanceof SandbankToolError) || error.status === 400) throw error;
    const reason = error.hint === undefined ? error.message : `${error.message}; ${error.hint}`;
    return { enabled: false, reason, code: error.code, tools: [] };
  });
  const tools = {} as SandbankTools<NAME>["tools"];
  if (!list.enabled) return { tools, enabled: false, reason: list.reason ?? "the server has no tools", code: list.code, reset };
  for (const name of names) {
    const described = list.tools.find((offered) => offered.name === name);
    if (!described) throw badAnswer(`the server offers no tool ${name}`);
    Object.assign(tools, { [name]: toolOf(server, described) });
  }
  return { tools, enabled: true, reason: undefined, code: undefined, reset };
}

/** What the AI SDK tells a tool that is called. */
interface Calling {
  abortSignal?: AbortSignal | undefined;
}

function toolOf(server: Server, { name, description, inputSchema: schema }: Described): Tool {
  return tool({
    description,
    inputSchema: inputSchema<unknown>(schema),
    execute:
      name === "bash"
        ? (input: unknown, { abortSignal }: Calling) => commandOutputs(server.follow(name, input, abortSignal))
        : (input: unknown, { abortSignal }: Calling) => server.run(name, input, abortSignal),
    ...(name === "bash" || name === "readFile" ? { toModelOutput: untrusted } : {}),
  } as Tool);
}

/** The server's question whether a command may run is an output of it, too: nothing is printed yet. */
async function* commandOutputs(outputs: AsyncIterable<unknown>): AsyncGenerator<unknown, void, undefined> {
  for await (const output of outputs) {
    if (!isObject(output) || output.status !== "waiting_for_approval") {
      yield output;
      continue;
    }
    const { approval_id: approvalId, digest, rule, deadline_ms: deadlineMs } = output;
    yield { stdout: "", stderr: "", exitCode: RUNNING, untrusted: true, approval: { approvalId, digest, rule, deadlineMs } };
  }
}

/**
 * What the model is told is marked as what programs and files say, first of all, whatever the server
 * sent. Version 5 of the AI SDK gives the output itself, later ones give an object that has it.
 */
function untrusted(given: object): { type: "json"; value: never } {
  const output = "toolCallId" in given && "output" in given ? given.output : given;
  return { type: "json", value: Object.assign({ untrusted: true }, output, { untrusted: true }) as never };
}

function baseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new SandbankToolError({ code: "bad_url", message: `${text} is not the http or https address of a server` });
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

/** Of how many characters, the server says. */
function sessionName(text: string): string {
  const name = text.trim();
  if (name === "" || /[\u0000-\u001f\u007f]/.test(name)) {
    const message = "a session is a name of the conversation, without control characters, such as chat:42";
    throw new SandbankToolError({ code: "bad_session", message });
  }
  return name;
}

/** Browsers have none; Deno may refuse. */
function environment(name: string): string | undefined {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}
