import { describe, expect, test } from "vitest";
import { loadExamples } from "../../test/support/own-gpu.ts";
import { SettingsFault } from "../declared-endpoint.ts";
import { sdapi } from "./index.ts";
import { readSdapiSettings } from "./settings.ts";

const image = {
  sizes: { kind: "grid" },
  maxN: 1,
  qualities: [] as readonly string[],
  maxReferences: 0,
  mask: false,
  streaming: false,
} as const;

async function faultOf(
  settings: object,
  offer: object = {},
  passthrough: readonly string[] = [],
): Promise<string> {
  try {
    await readSdapiSettings({ settings: { ...settings }, passthrough, image: { ...image, ...offer } });
    return "";
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return thrown.message;
    throw thrown;
  }
}

describe("settings", () => {
  test.each<[object, object?, (readonly string[])?]>([
    [{}],
    [{ exclusive: true, max_waiting: 0 }, { streaming: true }],
    [
      { loaded_model: true, parameters: { steps: 20 }, quality: { low: { steps: 5 } } },
      { qualities: ["low"] },
    ],
    [{}, {}, ["negative_prompt", "cfg_scale"]],
  ])("that can be meant are taken: %j", async (settings, offer, passthrough) => {
    expect(await faultOf(settings, offer, passthrough)).toBe("");
  });

  test.each<[string, object, object?, (readonly string[])?]>([
    ["unknown setting exklusive", { exklusive: true }],
    ["exclusive is true or false", { exclusive: "yes" }],
    ["loaded_model is true or false", { loaded_model: 1 }],
    ["max_waiting is a whole number up to 1000", { max_waiting: -1 }],
    ["parameters must be fields of a request", { parameters: [] }],
    ["quality must name fields of a request for each quality", { quality: { low: 12 } }],
    [
      "quality.high is missing, which image.qualities lists",
      { quality: { low: {} } },
      { qualities: ["high"] },
    ],
    ["image.streaming needs exclusive: true", {}, { streaming: true }],
    ["image.mask can't be offered", {}, { mask: true }],
    ["override_settings may not be in passthrough", {}, {}, ["override_settings"]],
    ["steps may not be in passthrough", {}, {}, ["steps"]],
    ["alwayson_scripts may not be in passthrough", {}, {}, ["cfg_scale", "alwayson_scripts"]],
  ])("that can't be meant are refused in one line: %s", async (fault, settings, offer, passthrough) => {
    const said = await faultOf(settings, offer, passthrough);
    expect(said.startsWith(fault), said).toBe(true);
  });
});

test("the example that comes along is a catalogue file", async () => {
  const catalog = await loadExamples(sdapi, "sdapi.yaml");
  const [endpoint] = catalog.imageModel("own/sdxl")?.endpoints ?? [];
  expect(endpoint).toMatchObject({
    settings: { exclusive: true },
    image: { streaming: true, maxStreamedN: 1 },
  });
});
