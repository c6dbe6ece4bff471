import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeServerSentEvents,
  OversizedEventError,
  type SplitEvent,
  splitServerSentEvents,
} from "./sse-decode.ts";

async function* feed(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

function cutUp(bytes: Buffer, cuts: readonly number[]): Uint8Array[] {
  const bounds = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
}

function decode(text: string, cuts: readonly number[] = [], limit = 1024) {
  return Array.fromAsync(decodeServerSentEvents(feed(cutUp(Buffer.from(text), cuts)), limit));
}

const field = fc.string({ unit: "grapheme", maxLength: 30 }).map((text) => text.replace(/[\r\n\0]/g, " "));
const event = fc.record({
  type: fc.option(
    field.filter((text) => text !== ""),
    { nil: undefined },
  ),
  lines: fc.array(field, { minLength: 1, maxLength: 3 }),
  comment: fc.option(field, { nil: undefined }),
});

describe("decoding server-sent events", () => {
  test("gives the same events however the bytes are cut, whatever ends the lines", async () => {
    const stream = fc.record({
      events: fc.array(event, { maxLength: 5 }),
      lineEnd: fc.constantFrom("\n", "\r", "\r\n"),
      hasByteOrderMark: fc.boolean(),
      cuts: fc.array(fc.nat(400), { maxLength: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(stream, async ({ events, lineEnd, hasByteOrderMark, cuts }) => {
        const text = events.flatMap(({ type, lines, comment }) => [
          ...(comment === undefined ? [] : [`: ${comment}`]),
          ...(type === undefined ? [] : [`event: ${type}`]),
          ...lines.map((line) => `data: ${line}`),
          "",
        ]);
        const wire = (hasByteOrderMark ? "\uFEFF" : "") + text.map((line) => line + lineEnd).join("");
        // Without what follows, a last lone CR could still become CRLF: harmless to events, all are complete.
        expect(await decode(`${wire}: end${lineEnd}`, cuts)).toEqual(
          events.map(({ type, lines }) => ({
            type: type ?? "message",
            data: lines.join("\n"),
          })),
        );
      }),
    );
  });

  test("takes one space off a value, fields without a value; ignores the rest", async () => {
    const text = "id: 7\nretry: 10\nfoo: bar\ndata:  two\ndata\nevent:x\n\ndata:y\n\n";
    expect(await decode(text)).toEqual([
      { type: "x", data: " two\n" },
      { type: "message", data: "y" },
    ]);
  });

  test("gives nothing for an event that the input cuts off", async () => {
    expect(await decode("data: whole\n\ndata: half\n")).toMatchObject([{ data: "whole" }]);
  });

  test("gives an event before more bytes come", async () => {
    const more = Promise.withResolvers<void>();
    async function* bytes() {
      yield Buffer.from("data: first\n\nda");
      await more.promise;
      yield Buffer.from("ta: second\n\n");
    }
    const events = decodeServerSentEvents(bytes(), 1024);
    expect((await events.next()).value?.data).toBe("first");
    more.resolve();
    expect((await events.next()).value?.data).toBe("second");
    expect((await events.next()).done).toBe(true);
  });

  test.for([
    ["one long line", "x".repeat(2_000)],
    ["many lines", `a\ndata: ${"b".repeat(500)}\ndata: ${"c".repeat(600)}\n`],
  ])("throws on an event past the limit: %s", async ([, data = ""]) => {
    await expect(decode(`data: ${data}`, [100, 1100])).rejects.toBeInstanceOf(OversizedEventError);
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
    for await (const _ of decodeServerSentEvents(bytes(), 1024)) break;
    expect(ended).toBe(true);
  });
});

const asIs = (event: SplitEvent) => event;

async function split(text: string, cuts: readonly number[] = [], limit = 4096) {
  const events = await Array.fromAsync(
    splitServerSentEvents(feed(cutUp(Buffer.from(text), cuts)), limit, asIs),
  );
  return events.map(({ type, data }) => ({ type, data: Buffer.concat(data).toString() }));
}

describe("splitting server-sent events", () => {
  test("gives what eventsource-parser gives, however the bytes are cut and whatever ends the lines", async () => {
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
        const parsed: { type: string; data: string }[] = [];
        const parser = createParser({
          onEvent: ({ event: type = "message", data }) => parsed.push({ type, data }),
        });
        parser.feed(wire);
        expect(await split(wire, cuts)).toEqual(parsed);
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
