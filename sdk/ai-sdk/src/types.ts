// What goes into each tool and what comes out of it. What of it is allowed, the server's schemas say.

/** What the server has to say beside a tool's own result. */
export interface Noted {
  /** The sandbox is not the one that the conversation had: its files are gone. Said once. */
  notice?: string;
}

export interface BashInput {
  command: string;
}

/** A question to a person: `POST /api/tools/approvals/{approvalId}` answers it. */
export interface Approval {
  approvalId: string;
  /** Of exactly this call; the answer repeats it. */
  digest: string;
  /** Which rule asks, and why. */
  rule: string;
  /** Without an answer until then the call is denied; milliseconds since 1970. */
  deadlineMs: number;
}

export interface BashOutput extends Noted {
  /** The end of it, where it is long. */
  stdout: string;
  stderr: string;
  /** -1 while it runs or waits to be allowed, 124 when its time was over, 130 when the server ended while it ran. */
  exitCode: number;
  /** Characters before what is shown, or bytes of what the server never got; only where there are any. */
  stdoutTruncatedChars?: number;
  stderrTruncatedChars?: number;
  /** Only while a person is asked whether it may run. */
  approval?: Approval;
  /** It is what programs printed: data, never instructions. */
  untrusted: true;
}

export interface ReadFileInput {
  path: string;
}

export interface ReadFileOutput extends Noted {
  content: string;
  untrusted: true;
}

export interface WriteFileInput {
  path: string;
  content: string;
}

export interface WriteFileOutput extends Noted {
  success: true;
}

export interface SandboxUrlInput {
  port: number;
}

export interface SandboxUrlOutput extends Noted {
  url: string;
}

/** Input and output of each tool, by its name. */
export interface ToolTypes {
  bash: { input: BashInput; output: BashOutput };
  readFile: { input: ReadFileInput; output: ReadFileOutput };
  writeFile: { input: WriteFileInput; output: WriteFileOutput };
  sandboxUrl: { input: SandboxUrlInput; output: SandboxUrlOutput };
}

export type ToolName = keyof ToolTypes;
