import { describe, expect, test } from "vitest";
import { Catalog, type Model, type SpeechEndpoint } from "./catalog.ts";

const model = (id: string, medium: Model["medium"] = "speech"): Model => ({
  id,
  permaslug: id,
  name: id,
  description: id,
  createdUnixS: 0,
  medium,
});

const endpoint = (id: string, providerSlug: string): SpeechEndpoint => ({
  id: `${id} at ${providerSlug}`,
  model: id,
  permaslug: id,
  providerSlug,
  providerName: providerSlug,
  upstreamModel: id,
  passthrough: [],
  prices: [],
  settings: {},
  speech: {
    formats: ["pcm"],
    sampleRateHz: 24_000,
    channels: 1,
    voices: [],
    defaultVoice: undefined,
    maxInputCharacters: 1,
    speed: undefined,
    instructions: false,
  },
});

const catalog = new Catalog(
  [model("b/two"), model("a/one"), model("c/picture", "image"), model("d/nobody")],
  [endpoint("b/two", "beta"), endpoint("a/one", "acme"), endpoint("b/two", "acme")],
);

describe("Catalog", () => {
  test("lists the models of its medium that somebody offers, by id, with their endpoints in order", () => {
    const listed = catalog
      .speechModels()
      .map(({ id, endpoints }) => [id, endpoints.map((offer) => offer.id)]);
    expect(listed).toEqual([
      ["a/one", ["a/one at acme"]],
      ["b/two", ["b/two at beta", "b/two at acme"]],
    ]);
  });

  test("knows models of other media, but does not speak with them", () => {
    expect(catalog.isKnownModel("c/picture")).toBe(true);
    expect(catalog.speechModel("c/picture")).toBeUndefined();
    expect(catalog.isKnownModel("e/other")).toBe(false);
    expect(catalog.speechModel("constructor")).toBeUndefined();
  });

  test("offeredBy leaves the endpoints of those providers and the models they still make up", () => {
    const rest = catalog.offeredBy((slug) => slug === "beta");
    expect(rest.speechModels().map(({ id }) => id)).toEqual(["b/two"]);
    expect(rest.speechModel("b/two")?.endpoints.map(({ id }) => id)).toEqual(["b/two at beta"]);
    expect(rest.isKnownModel("a/one")).toBe(false);
    expect(catalog.speechModels()).toHaveLength(2);
  });
});
