// Conversations of their own, so that tests do not meet in one sandbox.

import { randomUUID } from "node:crypto";
import { sandbankTools, type BashOutput, type SandbankTools, type SandbankToolsOptions } from "@sandbank/ai-sdk";

export type Conversation = SandbankTools & AsyncDisposable & { session: string };

/** Its sandbox ends with it. */
export async function conversation(options: Partial<SandbankToolsOptions> = {}): Promise<Conversation> {
  const session = options.session ?? `test:${randomUUID()}`;
  const found = await sandbankTools({ session, ...options });
  if (!found.enabled) throw new Error(`no tools: ${found.reason}`);
  return { ...found, session, [Symbol.asyncDispose]: () => found.reset() };
}

const NOBODY = { toolCallId: "by hand", messages: [], context: undefined };

/** Calls `bash` without a model; gives all that it yields. */
export async function bash({ tools }: SandbankTools, command: string, abortSignal?: AbortSignal): Promise<BashOutput[]> {
  const seen: BashOutput[] = [];
  const options = { ...NOBODY, ...(abortSignal && { abortSignal }) };
  for await (const output of tools.bash.execute!({ command }, options) as AsyncIterable<BashOutput>) seen.push(output);
  return seen;
}

export async function printed(tools: SandbankTools, command: string): Promise<string> {
  return (await bash(tools, command)).at(-1)?.stdout ?? "";
}

type OneOf = "readFile" | "writeFile" | "sandboxUrl";

/** Calls any other tool without a model. */
export function call({ tools }: SandbankTools, name: OneOf, input: unknown): Promise<unknown> {
  const execute = tools[name].execute as unknown as (input: unknown, options: typeof NOBODY) => Promise<unknown>;
  return execute(input, NOBODY);
}
