import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v5 } from "uuid";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { ConfigError } from "../../lib/runtime/config.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import { builtInProviders } from "../manifests.ts";
import { builtInCatalogDirectory, loadCatalog } from "./load.ts";
import { parseCatalogFile } from "./schema.ts";

let root: string;
let made = 0;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "catalog-"));
});
afterAll(async () => await rm(root, { recursive: true }));

/** A new directory with these files, each a text or something to write as YAML. */
async function directoryOf(files: Readonly<Record<string, unknown>>): Promise<string> {
  const directory = join(root, String(made++));
  await mkdir(directory);
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(directory, name), typeof content === "string" ? content : stringify(content));
  }
  return directory;
}

const uuid = (digit: number) => `0000000${digit}-0000-4000-8000-000000000000`;

const known = { id: "ann", language: "en-GB", gender: "female" };
const ann = { ...known, preview_url: "https://a.test/ann.mp3" };

const speech = {
  formats: ["mp3"],
  sample_rate_hz: 24_000,
  channels: 1,
  voices: [ann, "bob"],
  voice_aliases: { alloy: "ann" },
  default_voice: "ann",
  max_input_characters: 100,
  speed: { min: 0.5, max: 2 },
};
const model = {
  id: "acme/one",
  permaslug: "acme/one-2025-01-02",
  name: "One",
  description: "Speaks.",
  created: "2025-01-02",
  medium: "speech",
};
const endpoint = {
  id: uuid(1),
  model: "acme/one",
  upstream_model: "one-v1",
  speech,
  passthrough: ["tone"],
  settings: { stream: "sse" },
  prices: [{ billable: "input_character", usd_per_million: "15" }],
};
const acme = { provider: { slug: "acme", name: "Acme" }, models: [model], endpoints: [endpoint] };
const tokenPrice = { billable: "output_audio_token", usd_per_million: "12", most_per_input_character: 8 };

async function load(files: Readonly<Record<string, unknown>>, providerSlugs: readonly string[] = ["acme"]) {
  return await loadCatalog({ directories: [await directoryOf(files)], providerSlugs });
}

test("of every built-in provider the catalogue offers what it can do, and nothing else", async () => {
  const catalog = await loadCatalog({
    directories: [builtInCatalogDirectory],
    providerSlugs: builtInProviders.map(({ slug }) => slug),
  });
  const http = { request: () => Promise.reject(new Error("no upstream here")) };
  for (const manifest of builtInProviders) {
    const provider = await manifest.create({ http, fetchResult: noResults });
    expect([provider.speech, provider.image], manifest.slug).not.toEqual([undefined, undefined]);
    // The file, since an endpoint without a price is in no catalogue until the operator sets one. What a server of one's
    // own draws with, only who runs it can say: of those there are examples.
    const name = `${manifest.needsAddress ? "examples/" : ""}${manifest.slug}.yaml`;
    const { file } = parseCatalogFile(await readFile(join(builtInCatalogDirectory, name), "utf8"));
    const offers = (medium: "speech" | "image") => file?.endpoints?.some((entry) => entry[medium]) ?? false;
    expect(offers("speech"), manifest.slug).toBe(provider.speech !== undefined);
    expect(offers("image"), manifest.slug).toBe(provider.image !== undefined);
    await provider.close?.();
  }
  expect(catalog.speechModel("local/flite")?.endpoints[0]?.speech.defaultVoice).toBe("slt");
});

test("an entry becomes a model and its endpoint", async () => {
  const catalog = await load({ "acme.yaml": acme });
  expect(catalog.speechModels()).toEqual([
    {
      id: "acme/one",
      permaslug: "acme/one-2025-01-02",
      name: "One",
      description: "Speaks.",
      createdUnixS: 1_735_776_000,
      medium: "speech",
      endpoints: [
        {
          id: uuid(1),
          model: "acme/one",
          permaslug: "acme/one-2025-01-02",
          providerSlug: "acme",
          providerName: "Acme",
          upstreamModel: "one-v1",
          passthrough: ["tone"],
          settings: { stream: "sse" },
          prices: [
            {
              billable: "input_character",
              nanoUsdPerMillion: 15_000_000_000n,
              mostPerInputCharacter: undefined,
            },
          ],
          speech: {
            formats: ["mp3"],
            sampleRateHz: 24_000,
            channels: 1,
            voiceAliases: new Map([["alloy", "ann"]]),
            voices: [
              { ...known, name: "", previewUrl: "https://a.test/ann.mp3" },
              { id: "bob", name: "", language: "" },
            ],
            defaultVoice: "ann",
            maxInputCharacters: 100,
            speed: { min: 0.5, max: 2 },
            instructions: false,
            ownVoices: false,
          },
          cancel: undefined,
          billedBy: undefined,
        },
      ],
    },
  ]);
});

test("an endpoint without an id has one made of its provider and model, the same for good", async () => {
  const { id: _, ...nameless } = endpoint;
  const catalog = await load({ "acme.yaml": { ...acme, endpoints: [nameless] } });
  expect(catalog.speechModel("acme/one")?.endpoints[0]?.id).toBe(
    v5("acme acme/one", "6f0ff2e8-5a4b-4f5e-9c4c-3ad2c2b0e6a1"),
  );
  const twice = load({ "acme.yaml": { ...acme, endpoints: [nameless, nameless] } });
  await expect(twice).rejects.toThrow("is another endpoint's too");
});

test("a price by the second may say a part of one for each character", async () => {
  const seconds = { billable: "output_audio_second", usd_per_million: "167", most_per_input_character: 0.12 };
  const catalog = await load({ "acme.yaml": { ...acme, endpoints: [{ ...endpoint, prices: [seconds] }] } });
  const [price] = catalog.speechModel("acme/one")?.endpoints[0]?.prices ?? [];
  expect(price).toMatchObject({ billable: "output_audio_second", mostPerInputCharacter: 120n });
});

describe("a prices file", () => {
  const { prices: _, ...unpriced } = endpoint;
  const free = [{ billable: "input_character", usd_per_million: "0" }];
  const priceOf = async (files: Readonly<Record<string, unknown>>) =>
    (await load(files)).speechModel("acme/one")?.endpoints[0]?.prices[0]?.nanoUsdPerMillion;

  test("is what makes an endpoint without a price serve", async () => {
    const files = { "acme.yaml": { ...acme, endpoints: [unpriced] } };
    expect((await load(files)).speechModel("acme/one")).toBeUndefined();
    const prices = [{ endpoint: uuid(1), prices: endpoint.prices }];
    expect(await priceOf({ ...files, "prices.yaml": { prices } })).toBe(15_000_000_000n);
  });

  test("stands above the catalogue's own, 0 too, by endpoint or by provider and model", async () => {
    for (const name of [{ endpoint: uuid(1) }, { provider: "acme", model: "acme/one" }]) {
      const prices = [{ ...name, prices: free }];
      expect(await priceOf({ "acme.yaml": acme, "prices.yaml": { prices } })).toBe(0n);
    }
  });

  test("lies in another directory than the catalogue", async () => {
    const prices = [{ endpoint: uuid(1), prices: free }];
    const own = await directoryOf({ "prices.yaml": { prices } });
    const directories = [await directoryOf({ "acme.yaml": acme }), own];
    const catalog = await loadCatalog({ directories, providerSlugs: ["acme"] });
    expect(catalog.speechModel("acme/one")?.endpoints[0]?.prices).toMatchObject([{ nanoUsdPerMillion: 0n }]);
  });

  test.each<[string, unknown, string]>([
    ["an endpoint that nobody has", [{ endpoint: uuid(7), prices: free }], "prices.0: no file has such"],
    [
      "a model that the provider has not",
      [{ provider: "acme", model: "acme/two", prices: free }],
      "prices.0: no file",
    ],
    ["no prices", [{ endpoint: uuid(1), prices: [] }], "prices.yaml: prices.0"],
    [
      "a price that has no meaning there",
      [{ endpoint: uuid(1), prices: [{ billable: "output_image", unit: "image", usd_per_million: "1" }] }],
      "prices.yaml: prices.0.prices.0.billable: output_image has no meaning for speech",
    ],
  ])("of %s is refused", async (__, prices, fault) => {
    const loaded = load({ "acme.yaml": acme, "prices.yaml": { prices } });
    await expect(loaded).rejects.toThrow(fault);
    await expect(loaded).rejects.toBeInstanceOf(ConfigError);
  });
});

test("the prices that come along have a source with its date, and none is 0", async () => {
  const vendors = builtInProviders.filter(({ slug, needsAddress }) => slug !== "local" && !needsAddress);
  for (const { slug } of vendors) {
    const { file } = parseCatalogFile(await readFile(join(builtInCatalogDirectory, `${slug}.yaml`), "utf8"));
    for (const { model: id, prices, price_source } of file?.endpoints ?? []) {
      if (prices !== undefined) expect(price_source, id).toBeDefined();
      expect(prices?.every(({ usd_per_million }) => Number(usd_per_million) > 0) ?? true, id).toBe(true);
    }
  }
});

test("an entry may say that cancelled work is free, that it takes instructions and own voices", async () => {
  const spoken = { ...endpoint.speech, instructions: true, own_voices: true };
  const instructed = { ...endpoint, cancel: "free", speech: spoken };
  const catalog = await load({ "acme.yaml": { ...acme, endpoints: [instructed] } });
  const [only] = catalog.speechModel("acme/one")?.endpoints ?? [];
  expect(only).toMatchObject({ cancel: "free", speech: { instructions: true, ownVoices: true } });
  const odd = { "acme.yaml": { ...acme, endpoints: [{ ...endpoint, cancel: "cheap" }] } };
  await expect(load(odd)).rejects.toThrow("cancel");
});

test("optional fields may be left out, and a written price of 0 is a price", async () => {
  const bare = { formats: ["pcm"], sample_rate_hz: 16_000, channels: 1, max_input_characters: 1 };
  const { passthrough, settings, ...required } = endpoint;
  const free = [{ billable: "request", usd_per_million: "0" }];
  const catalog = await load({
    "acme.yaml": { ...acme, endpoints: [{ ...required, speech: bare, prices: free }] },
  });
  const [only] = catalog.speechModel("acme/one")?.endpoints ?? [];
  expect(only).toMatchObject({ passthrough: [], settings: {}, prices: [{ nanoUsdPerMillion: 0n }] });
  expect(only?.speech).toMatchObject({ voices: [], defaultVoice: undefined, speed: undefined });
});

test("another file's endpoint of a model stands behind its author's own", async () => {
  const zeta = { ...acme, provider: { slug: "zeta", name: "Zeta" } };
  const abel = {
    provider: { slug: "abel", name: "Abel" },
    endpoints: [{ ...endpoint, id: uuid(2) }],
  };
  const catalog = await load({ "abel.yaml": abel, "zeta.yaml": zeta }, ["abel", "zeta"]);
  const slugs = catalog.speechModel("acme/one")?.endpoints.map(({ providerSlug }) => providerSlug);
  expect(slugs).toEqual(["zeta", "abel"]);
});

test("a later directory replaces files of the same name and adds others; the rest is not read", async () => {
  const dearer = { ...endpoint, prices: [{ billable: "input_character", usd_per_million: "99.5" }] };
  const beta = {
    provider: { slug: "beta", name: "Beta" },
    endpoints: [{ ...endpoint, id: uuid(2), prices: [tokenPrice] }],
  };
  const first = await directoryOf({ "acme.yaml": acme });
  const second = await directoryOf({
    "acme.yaml": { ...acme, endpoints: [dearer] },
    "README.md": "not YAML: [",
    ".hidden.yaml": "not YAML: [",
  });
  const elsewhere = await directoryOf({ "mounted.yaml": beta });
  await symlink(join(elsewhere, "mounted.yaml"), join(second, "beta.yaml"));
  const catalog = await loadCatalog({ directories: [first, second], providerSlugs: ["acme", "beta"] });
  const prices = catalog.speechModel("acme/one")?.endpoints.flatMap((offer) => offer.prices);
  expect(prices?.map(({ nanoUsdPerMillion }) => nanoUsdPerMillion)).toEqual([
    99_500_000_000n,
    12_000_000_000n,
  ]);
});

describe("is refused, with file and path in one line:", () => {
  const changed = (part: object) => ({ ...acme, endpoints: [{ ...endpoint, ...part }] });
  const spoken = (part: object) => changed({ speech: { ...speech, ...part } });
  const without = (field: keyof typeof endpoint) => {
    const { [field]: _, ...rest } = endpoint;
    return { ...acme, endpoints: [rest] };
  };
  const oddModel = (part: object) => ({ ...acme, models: [{ ...model, ...part }] });
  const price = (part: object) => changed({ prices: [{ ...endpoint.prices[0], ...part }] });

  test.each<[string, unknown, string]>([
    ["an empty file", "", "the file: must be object"],
    ["broken YAML", "provider: [", "at line 1"],
    ["a key written twice", "provider: {slug: acme, slug: acme}", "Map keys must be unique"],
    ["an unknown field", { ...acme, extra: 1 }, "the file: unknown field extra"],
    ["an unknown field deep down", spoken({ colour: "red" }), "endpoints.0.speech: unknown field colour"],
    ["an empty price list", changed({ prices: [] }), "endpoints.0.prices: must not have fewer than 1"],
    [
      "a price that is a number",
      price({ usd_per_million: 15 }),
      "endpoints.0.prices.0.usd_per_million: must be string",
    ],
    ["a negative price", price({ usd_per_million: "-1" }), "prices.0.usd_per_million: must match pattern"],
    [
      "an unknown billable",
      price({ billable: "sentence" }),
      "prices.0.billable: must be one of input_character",
    ],
    [
      "two prices of one unit",
      changed({ prices: [tokenPrice, tokenPrice] }),
      "endpoints.0.prices.1: output_audio_token has",
    ],
    [
      "a token price without bound",
      price({ billable: "input_text_token" }),
      "most_per_input_character is missing",
    ],
    [
      "a bound where none is due",
      price({ most_per_input_character: 2 }),
      "most_per_input_character has no meaning",
    ],
    ["an endpoint id that is no UUID", changed({ id: "one" }), "endpoints.0.id: must match pattern"],
    ["an endpoint id used twice", { ...acme, endpoints: [endpoint, endpoint] }, "endpoints.1.id: 00000001-"],
    [
      "an endpoint of an unknown model",
      changed({ model: "acme/two" }),
      "endpoints.0.model: no file declares acme/two",
    ],
    ["an endpoint without its medium", without("speech"), "endpoints.0.speech: is missing"],
    ["a model without endpoint", { ...acme, endpoints: [] }, "models.0: acme/one has no endpoint"],
    [
      "a model declared twice",
      { ...acme, models: [model, model] },
      "models.1.id: acme/one is declared twice",
    ],
    [
      "a permaslug of another author",
      oddModel({ permaslug: "else/one" }),
      "models.0.permaslug: must begin with acme/",
    ],
    [
      "a permaslug of two models",
      { ...acme, models: [model, { ...model, id: "acme/two" }] },
      "is the permaslug of acme/one too",
    ],
    ["a date that is none", oddModel({ created: "2025-02-30" }), "models.0.created: 2025-02-30 is no date"],
    ["a model id without author", oddModel({ id: "one" }), "models.0.id: must match pattern"],
    ["an unknown medium", oddModel({ medium: "video" }), "models.0.medium: must be one of speech, image"],
    [
      "a default voice that is no voice",
      spoken({ default_voice: "eve" }),
      "speech.default_voice: eve is not among",
    ],
    [
      "a voice listed twice",
      spoken({ voices: [{ id: "ann" }, { id: "ann" }] }),
      "speech.voices: ann is listed twice",
    ],
    [
      "an alias of no voice",
      spoken({ voice_aliases: { nova: "eve" } }),
      "speech.voice_aliases.nova: eve is not among",
    ],
    [
      "an alias that is a voice",
      spoken({ voice_aliases: { bob: "ann" } }),
      "speech.voice_aliases: bob is a voice itself",
    ],
    [
      "a preview that is no https URL",
      spoken({ voices: [{ id: "ann", preview_url: "a.mp3" }] }),
      "speech.voices",
    ],
    ["an unknown format", spoken({ formats: ["ogg"] }), "speech.formats.0: must be one of mp3, pcm"],
    [
      "a speed range that excludes 1",
      spoken({ speed: { min: 2, max: 4 } }),
      "speech.speed.min: must be <= 1",
    ],
    [
      "a passthrough key of ours",
      changed({ passthrough: ["tone", "responseFormat"] }),
      "passthrough.1: responseFormat may not",
    ],
    [
      "a passthrough key twice",
      changed({ passthrough: ["tone", "tone"] }),
      "endpoints.0.passthrough: must not have duplicate",
    ],
    [
      "a slug that is not the file's name",
      { ...acme, provider: { slug: "beta", name: "Beta" } },
      "provider.slug: beta must be",
    ],
  ])("%s", async (_, content, fault) => {
    const refusal = await load({ "acme.yaml": content }, ["acme", "beta"]).then(
      () => "accepted",
      (error: unknown) => error,
    );
    expect(refusal).toBeInstanceOf(ConfigError);
    const { message } = refusal as ConfigError;
    expect(message).toMatch(/^catalogue: \/.*\/acme\.yaml: /);
    expect(message).toContain(fault);
    expect(message).not.toContain("\n");
  });

  test("a provider that is not built in", async () => {
    await expect(load({ "acme.yaml": acme }, ["beta"])).rejects.toThrow("no provider acme is built in");
  });

  test("aliases that expand without end", async () => {
    const bomb = `a: &a [x, x, x, x, x, x, x, x, x]\n${[..."bcdefgh"].map((key, index) => `${key}: &${key} [${`*${"abcdefgh"[index]}, `.repeat(9)}]`).join("\n")}`;
    await expect(load({ "acme.yaml": bomb })).rejects.toThrow(ConfigError);
  });

  test("a file that would go unread for its ending", async () => {
    await expect(load({ "acme.yml": acme })).rejects.toThrow("acme.yml: must be named .yaml");
  });

  test("a directory that is not there", async () => {
    const missing = loadCatalog({ directories: [join(root, "missing")], providerSlugs: [] });
    await expect(missing).rejects.toThrow(/^catalogue: the directory .*missing can't be read \(ENOENT\)$/);
  });

  test("many faults at once, of which it names the first few", async () => {
    const endpoints = Array.from({ length: 9 }, (_, index) => ({
      ...endpoint,
      id: uuid(index),
      upstream_model: "",
    }));
    await expect(load({ "acme.yaml": { ...acme, endpoints } })).rejects.toThrow(/; and \d more$/);
  });

  test("more unknown fields than the validator reports", async () => {
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`extra${index}`, {}]));
    await expect(load({ "acme.yaml": { ...acme, ...many } })).rejects.toThrow(
      "the file: unknown field extra0",
    );
  });
});
