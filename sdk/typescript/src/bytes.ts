// Bytes in the shapes callers have them, and base64 without Node.

/** Anything that can be sent as bytes at once. Text is UTF-8. */
export type Bytes = string | Uint8Array | ArrayBuffer;

/** Anything that can be sent as bytes, also piece by piece. */
export type ByteSource = Bytes | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

const encoder = new TextEncoder();

export function bytesOf(data: Bytes): Uint8Array<ArrayBuffer> {
  if (typeof data === "string") return encoder.encode(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  return data as Uint8Array<ArrayBuffer>;
}

/** Not cutting at characters: for whole outputs only. */
export function textOf(data: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(data);
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The source in pieces that are neither empty nor longer than `max`. */
export async function* piecesOf(source: ByteSource, max: number): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  for await (const data of wholes(source)) {
    for (let at = 0; at < data.length; at += max) yield data.subarray(at, at + max);
  }
}

async function* wholes(source: ByteSource): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  if (typeof source === "string" || source instanceof Uint8Array || source instanceof ArrayBuffer) {
    yield bytesOf(source);
  } else if (source instanceof Blob) {
    yield* readAll(source.stream());
  } else if (source instanceof ReadableStream) {
    yield* readAll(source);
  } else {
    for await (const part of source) yield bytesOf(part);
  }
}

/** Browsers' streams are not all iterable. */
async function* readAll(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  const reader = stream.getReader();
  let done = false;
  try {
    for (;;) {
      const piece = await reader.read();
      done = piece.done;
      if (piece.done) return;
      yield bytesOf(piece.value);
    }
  } finally {
    if (!done) reader.cancel().catch(() => undefined);
  }
}

/** A stream that asks its source only when its reader asks. */
export function streamOf(source: AsyncGenerator<Uint8Array, unknown, undefined>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await source.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await source.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

interface Fast {
  Buffer?: { from(text: string, encoding: "base64"): Uint8Array };
}

type FromBase64 = { fromBase64?: (text: string) => Uint8Array };

export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as FromBase64).fromBase64;
  if (native) return native(text);
  const fast = (globalThis as Fast).Buffer?.from(text, "base64");
  if (fast) return new Uint8Array(fast.buffer, fast.byteOffset, fast.byteLength);
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Text longer than this is not passed to a function as arguments. */
const SPREAD = 0x8000;

export function toBase64(data: Uint8Array): string {
  let text = "";
  for (let at = 0; at < data.length; at += SPREAD) {
    text += String.fromCharCode(...data.subarray(at, at + SPREAD));
  }
  return btoa(text);
}
