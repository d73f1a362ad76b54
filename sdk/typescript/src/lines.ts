// Bytes to lines, however they were cut on the way. A line counts only once its end is there.

import { joined } from "./bytes.js";

const NEWLINE = 10;

export class Lines {
  #begun: Uint8Array[] = [];
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** The lines that this piece completes. */
  *feed(piece: Uint8Array): Generator<string, void, undefined> {
    let start = 0;
    for (;;) {
      const end = piece.indexOf(NEWLINE, start);
      if (end < 0) break;
      const rest = piece.subarray(start, end);
      const line = this.#begun.length > 0 ? joined([...this.#begun, rest]) : rest;
      this.#begun = [];
      start = end + 1;
      yield this.#decoder.decode(line);
    }
    // A copy: readers may reuse what they gave out.
    if (start < piece.length) this.#begun.push(piece.slice(start));
  }
}
