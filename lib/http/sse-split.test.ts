import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeServerSentEvents, OversizedEventError } from "./sse-decode.ts";
import { type SplitEvent, splitServerSentEvents } from "./sse-split.ts";

async function* feed(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

function cutUp(bytes: Buffer, cuts: readonly number[]): Uint8Array[] {
  const bounds = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
}

const asIs = (event: SplitEvent) => event;

async function split(text: string, cuts: readonly number[] = [], limit = 4096) {
  const events = await Array.fromAsync(
    splitServerSentEvents(feed(cutUp(Buffer.from(text), cuts)), limit, asIs),
  );
  return events.map(({ type, data }) => ({ type, data: Buffer.concat(data).toString() }));
}

describe("splitting server-sent events", () => {
  test("gives what the decoder gives, however the bytes are cut and whatever ends the lines", async () => {
    const line = fc.oneof(
      fc.constantFrom(
        "",
        "data",
        "data:",
        "data: ",
        "event",
        "event:",
        "event: x",
        "\uFEFFdata: x",
        "id: 1",
        "retry: 2",
        ": c",
      ),
      fc.string({ unit: "grapheme", maxLength: 30 }).map((text) => `data: ${text.replace(/[\r\n\0]/g, " ")}`),
      fc.string({ unit: "grapheme-ascii", maxLength: 12 }),
    );
    const stream = fc.record({
      lines: fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")), { maxLength: 20 }),
      hasByteOrderMark: fc.boolean(),
      cuts: fc.array(fc.nat(600), { maxLength: 20 }),
    });
    await fc.assert(
      fc.asyncProperty(stream, async ({ lines, hasByteOrderMark, cuts }) => {
        const wire = `${hasByteOrderMark ? "\uFEFF" : ""}${lines.flat().join("")}\n: end\n`;
        const decoded = await Array.fromAsync(decodeServerSentEvents(feed([Buffer.from(wire)]), 4096));
        expect(await split(wire, cuts)).toEqual(decoded.map(({ type, data }) => ({ type, data })));
      }),
      { numRuns: 500 },
    );
  });

  test("hands on the bytes that came in, uncopied", async () => {
    const chunk = Buffer.from(`event: big\ndata: ${"x".repeat(1000)}\n\n`);
    const [event] = await Array.fromAsync(splitServerSentEvents(feed([chunk]), 4096, asIs));
    expect(event?.data.map(({ buffer }) => buffer)).toEqual([chunk.buffer]);
    expect(event?.data[0]?.byteOffset).toBe(chunk.byteOffset + chunk.indexOf("xxx"));
  });

  test("gives an event before more bytes come, and nothing for one that the input cuts off", async () => {
    const more = Promise.withResolvers<void>();
    async function* bytes() {
      yield Buffer.from("data: first\n\nda");
      await more.promise;
      yield Buffer.from("ta: second\n\ndata: third\n");
    }
    const events = splitServerSentEvents(bytes(), 1024, asIs);
    expect(String((await events.next()).value?.data[0])).toBe("first");
    more.resolve();
    expect((await events.next()).done).toBe(false);
    expect((await events.next()).done).toBe(true);
  });

  test.for([
    ["one long line", `data: ${"x".repeat(2_000)}`],
    ["many lines", `data: a\ndata: ${"b".repeat(500)}\ndata: ${"c".repeat(600)}\n`],
    ["a comment", `:${"x".repeat(2_000)}`],
  ])("throws on an event past the limit: %s", async ([, text = ""]) => {
    await expect(split(text, [100, 1100], 1024)).rejects.toBeInstanceOf(OversizedEventError);
  });

  test("ends its source when the reader leaves", async () => {
    let ended = false;
    async function* bytes() {
      try {
        for (;;) yield Buffer.from("data: x\n\n");
      } finally {
        ended = true;
      }
    }
    for await (const _ of splitServerSentEvents(bytes(), 1024, asIs)) break;
    expect(ended).toBe(true);
  });
});
