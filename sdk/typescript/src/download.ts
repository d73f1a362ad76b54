// A file's bytes, resumed where a connection breaks: the rest is asked for by range, on condition
// that the file is still the same.

import { Conflict, ConnectionFailed } from "./errors.js";
import type { Transport } from "./transport.js";

export async function* download(
  transport: Transport,
  url: string,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const retries = transport.retries(signal);
  let [done, size, version] = [0, Number.NaN, ""];
  for (;;) {
    try {
      const headers: Record<string, string> = done > 0 ? { range: `bytes=${done}-`, "if-range": version } : {};
      const { response, pieces, close } = await transport.open(url, { query: { path }, headers, signal });
      if (done > 0 && response.status !== 206) {
        close();
        throw new Conflict({ code: "file_changed", message: `the file ${path} was changed while it was read` });
      }
      if (done === 0) {
        size = Number(response.headers.get("content-length") ?? Number.NaN);
        version = response.headers.get("etag") ?? "";
      }
      for await (const piece of pieces()) {
        retries.progress();
        done += piece.length;
        yield piece;
      }
      // Not every fetch tells an answer that is too short.
      if (!(done < size)) return;
      throw new ConnectionFailed({ code: "connection_failed", message: "the file broke off", retryable: true });
    } catch (error) {
      if (done > 0 && done === size && error instanceof ConnectionFailed) return;
      await retries.after(error);
    }
  }
}
