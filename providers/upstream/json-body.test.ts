import { expect, test } from "vitest";
import { Base64Text, jsonBody } from "./json-body.ts";

const textOf = (value: unknown) => Buffer.concat([...jsonBody(value)]).toString("utf8");

test("is the JSON of the value, with bytes as base64 in the place of their objects", () => {
  const [first, second] = [Buffer.from([0xff, 0xd8, 0xff]), Buffer.from("zwei")];
  const value = {
    prompt: 'Ein "Boot" ⛵',
    image: new Base64Text(first),
    images: [{ url: new Base64Text(second.subarray(1), "data:image/png;base64,") }],
    seed: undefined,
  };
  expect(JSON.parse(textOf(value))).toEqual({
    prompt: 'Ein "Boot" ⛵',
    image: first.toString("base64"),
    images: [{ url: `data:image/png;base64,${Buffer.from("wei").toString("base64")}` }],
  });
});

test("of a value without bytes is one piece", () => {
  expect(jsonBody({ a: 1 })).toHaveLength(1);
  expect(textOf({ a: 1 })).toBe('{"a":1}');
});
