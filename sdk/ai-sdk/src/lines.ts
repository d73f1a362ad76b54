// A stream of bytes as its lines. A line counts only once its end is there; empty ones are heartbeats.

export async function* lines(body: ReadableStream<Uint8Array>, silenceMs: number): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let begun = "";
  try {
    for (;;) {
      const { done, value } = await within(silenceMs, reader.read());
      if (done) return;
      const whole = (begun + decoder.decode(value, { stream: true })).split("\n");
      begun = whole.pop() ?? "";
      for (const line of whole) if (line !== "") yield line;
    }
  } finally {
    // Frees the connection where nobody reads to the end; its failure says nothing new.
    reader.cancel().catch(() => undefined);
  }
}

function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing came for ${limitMs} ms`)), limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
