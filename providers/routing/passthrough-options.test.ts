import { expect, test } from "vitest";
import { passedThrough } from "./passthrough-options.ts";

const endpoint = { providerSlug: "acme", passthrough: ["tone", "toString"] };

test("options go through to their own provider alone, and only the keys that its endpoint allows", () => {
  const options = { acme: { tone: "calm", voice: "x", n: 2 }, zenith: { tone: "loud" } };
  expect(passedThrough(endpoint, { options })).toEqual({
    options: { tone: "calm" },
    ignored: ["provider.options.acme.voice", "provider.options.acme.n"],
  });
});

test("nothing goes through where nothing was given", () => {
  const nothing = { options: {}, ignored: [] };
  expect(passedThrough(endpoint, undefined)).toEqual(nothing);
  expect(passedThrough(endpoint, { options: { zenith: { tone: "loud" } } })).toEqual(nothing);
});
