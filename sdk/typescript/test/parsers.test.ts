// Bytes to events and lines, cut everywhere. The only tests of parts that the package does not show.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Random, SEED } from "./random.js";

interface SseEvent {
  event: string;
  data: string;
  id: string | undefined;
}
type Parser<T> = { feed(piece: Uint8Array): Iterable<T> };

const inner = (name: string) => import(import.meta.resolve("sandbank").replace(/index\.js$/, name)) as Promise<Record<string, never>>;
const { SseParser } = (await inner("sse.js")) as unknown as { SseParser: new () => Parser<SseEvent> };
const { Lines } = (await inner("lines.js")) as unknown as { Lines: new () => Parser<string> };

const STREAM = new TextEncoder().encode(
  "\uFEFF: a comment\n\nevent: chunk\ndata: {\"chunk\":\"h\u00e9 \u20ac \u{1F600}\"}\n\n" +
    "id: 7\r\nevent: done\r\ndata: a\r\ndata: b\r\n\r\nid: 8\rdata:no space\rdata:  two spaces\r\r" +
    "event: nothing\n\ndata\n\nretry: 5\nunknown: x\ndata: \n\nevent: unfinished\ndata: never\n",
);
const EVENTS: SseEvent[] = [
  { event: "chunk", data: '{"chunk":"h\u00e9 \u20ac \u{1F600}"}', id: undefined },
  { event: "done", data: "a\nb", id: "7" },
  { event: "message", data: "no space\n two spaces", id: "8" },
  { event: "message", data: "", id: "8" },
  { event: "message", data: "", id: "8" },
];

function fed<T>(parser: Parser<T>, bytes: Uint8Array, cuts: number[]): T[] {
  const edges = [0, ...cuts, bytes.length];
  return edges.slice(1).flatMap((end, index) => [...parser.feed(bytes.slice(edges[index], end))]);
}

test("events are the same whole, cut at any byte, and byte by byte", () => {
  assert.deepEqual(fed(new SseParser(), STREAM, []), EVENTS);
  for (let at = 0; at <= STREAM.length; at += 1) {
    assert.deepEqual(fed(new SseParser(), STREAM, [at]), EVENTS, `cut at ${at}`);
  }
  const every = Array.from(STREAM, (_, index) => index);
  assert.deepEqual(fed(new SseParser(), STREAM, every), EVENTS);
});

test("events are the same in any chunking", () => {
  const random = new Random(SEED);
  for (let round = 0; round < 500; round += 1) {
    const cuts = Array.from({ length: random.below(40) }, () => random.below(STREAM.length + 1)).sort((a, b) => a - b);
    assert.deepEqual(fed(new SseParser(), STREAM, cuts), EVENTS, `seed ${SEED}, round ${round}: ${cuts.join()}`);
  }
});

test("lines are the same cut at any byte, and one without its end does not count", () => {
  const bytes = new TextEncoder().encode('{"a":"\u20ac"}\n\nx\u{1F600}\n{"cut":');
  const lines = ['{"a":"\u20ac"}', "", "x\u{1F600}"];
  for (let at = 0; at <= bytes.length; at += 1) {
    assert.deepEqual(fed(new Lines(), bytes, [at]), lines, `cut at ${at}`);
  }
  assert.deepEqual(fed(new Lines(), bytes, Array.from(bytes, (_, index) => index)), lines);
});
