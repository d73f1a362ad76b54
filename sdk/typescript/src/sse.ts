// Server-sent events, as the standard has them, from bytes cut anywhere: between `event:` and
// `data:`, inside a character, between CR and LF.

export interface SseEvent {
  /** `message` where the server named none. */
  event: string;
  data: string;
  /** The last id that was sent, also with an earlier event. */
  id: string | undefined;
}

export class SseParser {
  // Drops a byte order mark at the beginning, as the standard wants it.
  readonly #decoder = new TextDecoder();
  #line = "";
  #afterCarriageReturn = false;
  #event = "";
  #data: string[] = [];
  #id: string | undefined;

  /** The events that this piece completes. What has no blank line after it never counts. */
  *feed(piece: Uint8Array): Generator<SseEvent, void, undefined> {
    let text = this.#decoder.decode(piece, { stream: true });
    if (text === "") return;
    if (this.#afterCarriageReturn && text.startsWith("\n")) text = text.slice(1);
    this.#afterCarriageReturn = text === "" ? false : text.endsWith("\r");
    const lines = (this.#line + text).split(/\r\n|\r|\n/);
    this.#line = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.#take(line);
      if (event) yield event;
    }
  }

  #take(line: string): SseEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #dispatch(): SseEvent | undefined {
    const [event, data] = [this.#event || "message", this.#data];
    this.#event = "";
    this.#data = [];
    return data.length > 0 ? { event, data: data.join("\n"), id: this.#id } : undefined;
  }
}
