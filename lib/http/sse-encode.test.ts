import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeComment, encodeServerSentEvent, eventEnd, eventStart } from "./sse-encode.ts";

/** What an independent parser makes of a stream. */
function parse(stream: string) {
  const seen: { data: string[]; comments: string[] } = { data: [], comments: [] };
  const parser = createParser({
    onEvent: ({ data }) => seen.data.push(data),
    onComment: (comment) => seen.comments.push(comment),
  });
  parser.feed(stream);
  return seen;
}

test("whatever an event holds, a client reads it back with its line breaks as line feeds", () => {
  const text = fc.string({ unit: fc.constantFrom("a", ":", " ", "\n", "\r", "\u2028", "💬", "data: ", "0") });
  fc.assert(
    fc.property(fc.array(text), (texts) => {
      const stream = texts.map(encodeServerSentEvent).join("");
      expect(parse(stream)).toEqual({
        data: texts.map((data) => data.replace(/\r\n?/g, "\n")),
        comments: [],
      });
    }),
  );
});

test("an event of one line looks as the interface shows it", () => {
  expect(encodeServerSentEvent('{"a":1}')).toBe('data: {"a":1}\n\n');
  expect(encodeServerSentEvent("[DONE]")).toBe("data: [DONE]\n\n");
});

test("pieces between start and end are one event, and none without the end", () => {
  expect(parse(`${eventStart}abcd${eventEnd}`).data).toEqual(["abcd"]);
  expect(parse(`${eventStart}abcd\n`).data).toEqual([]);
});

test("a comment is no event and stays on its line", () => {
  expect(encodeComment("keep-alive")).toBe(": keep-alive\n\n");
  expect(parse(`${encodeComment("a\r\ndata: b\n\n")}${encodeServerSentEvent("c")}`)).toEqual({
    data: ["c"],
    comments: ["a data: b "],
  });
});
