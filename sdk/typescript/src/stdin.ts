// Feeding a command. Every piece says where in the whole input it belongs, so a piece whose answer
// got lost can be sent again: the server skips what it has already.

import { piecesOf, type ByteSource } from "./bytes.js";
import { Conflict, Gone, Timeout } from "./errors.js";
import type { Call, Transport } from "./transport.js";
import type { components } from "./wire.js";

type Reply = components["schemas"]["StdinReply"];
type Status = components["schemas"]["Command"];

/** Large enough to be fast, small enough to be sent again without regret. */
const PIECE_BYTES = 256 * 1024;

export class Stdin {
  #offset: number | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** `offset` is 0 for a command that was just started, and unknown for one that was found. */
  constructor(
    private readonly transport: Transport,
    private readonly path: string,
    offset?: number,
  ) {
    this.#offset = offset;
  }

  /** Writes take turns, in the order they were asked for. */
  write(data: ByteSource, close: boolean, signal?: AbortSignal): Promise<void> {
    const turn = this.#turn.then(() => this.#write(data, close, signal));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #write(data: ByteSource, close: boolean, signal?: AbortSignal): Promise<void> {
    for await (const piece of piecesOf(data, PIECE_BYTES)) await this.#send(piece, false, signal);
    if (close) await this.#send(new Uint8Array(0), true, signal);
  }

  async #send(piece: Uint8Array<ArrayBuffer>, eof: boolean, signal?: AbortSignal): Promise<void> {
    const offset = this.#offset ?? (await this.#accepted(signal));
    const end = offset + piece.length;
    const call: Call = { query: { offset, ...(eof ? { eof } : {}) }, body: piece, repeatable: true, signal };
    call.headers = { "content-type": "application/octet-stream" };
    let next: number;
    try {
      next = (await this.#patiently(call)).nextOffset;
    } catch (error) {
      this.#offset = undefined;
      // It may have ended because of what it was sent, before the answer got through.
      if (!(error instanceof Gone) || error.code !== "closed" || (await this.#accepted(signal)) !== end) throw error;
      next = end;
    }
    this.#offset = next;
    if (next !== end) {
      const message = "somebody else writes to this command, too: some input was not taken";
      throw new Conflict({ code: "stdin_shared", message, hint: "let only one client write" });
    }
  }

  /** A command that does not read is waited for, as a pipe would; the offset makes asking again safe. */
  async #patiently(call: Call): Promise<Reply> {
    for (;;) {
      try {
        return await this.transport.json<Reply>("POST", `${this.path}/stdin`, call);
      } catch (error) {
        if (!(error instanceof Timeout) || error.status !== undefined) throw error;
      }
    }
  }

  async #accepted(signal?: AbortSignal): Promise<number> {
    return (await this.transport.json<Status>("GET", this.path, { signal })).stdinOffset;
  }
}
