import { create } from "@bufbuild/protobuf";
import { describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  ProviderPreferencesSchema,
  ProviderSort,
} from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { Catalog, type ImageEndpoint } from "../../providers/catalog/catalog.ts";
import type { ImageCapabilities, ImagePrice } from "../../providers/catalog/image.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { imageCatalogOf, imageEndpoint } from "../../test/fakes/fake-image.ts";
import { speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { imageRequest } from "../../test/fakes/image-scene.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import type { ImageRequest } from "./image-request.ts";
import { askedOf, candidatesFor, planCall } from "./plan.ts";

const anySize = { aspectRatio: undefined, resolution: undefined, pixels: undefined };
const preferences = (fields: Parameters<typeof create<typeof ProviderPreferencesSchema>>[1]) =>
  create(ProviderPreferencesSchema, fields);
const data = { kind: "data", bytes: new Uint8Array(1) } as const;
const health = new EndpointHealth({ clock: new ManualClock() });
const providers = { operatorKeys: () => 1 };
const random = () => 0.5;
const noKeys: ReadonlyMap<string, string> = new Map();

/** The slugs that may serve, or why none may. */
function route(request: ImageRequest, ...endpoints: readonly ImageEndpoint[]) {
  try {
    return candidatesFor(
      request,
      { catalog: imageCatalogOf(...endpoints), health, providers, random },
      noKeys,
    ).map(({ providerSlug }) => providerSlug);
  } catch (thrown) {
    if (!(thrown instanceof DomainError)) throw thrown;
    return { reason: thrown.reason, paths: thrown.issues.map(({ path }) => path) };
  }
}

const poor: Partial<ImageCapabilities> = {
  formats: ["png"],
  sizes: { kind: "list", sizes: [{ width: 1024, height: 1024 }] },
  maxN: 1,
  qualities: [],
  backgrounds: [],
  compression: false,
  seed: false,
  maxReferences: 0,
  streaming: false,
};

test("a seed leaves nothing of the choice of an endpoint to chance", () => {
  const random = vi.fn(() => 0.5);
  const catalog = imageCatalogOf(imageEndpoint(), imageEndpoint({ providerSlug: "zenith" }));
  const sources = { catalog, health, providers, random };
  for (const seed of [undefined, 0]) {
    expect(candidatesFor(imageRequest({ seed }), sources, noKeys)).toHaveLength(2);
    expect(random).toHaveBeenCalledTimes(2);
  }
});

describe("an endpoint can't serve", () => {
  const unsupported = (path: string) => ({ reason: ErrorReason.UNSUPPORTED_PARAMETER, paths: [path] });

  test.for<[string, Partial<ImageCapabilities>, Partial<ImageRequest>, string]>([
    ["a longer prompt", { maxPromptCharacters: 3 }, { prompt: "boat" }, "prompt"],
    ["more images than it makes", { maxN: 1 }, { n: 2 }, "n"],
    ["references where it takes none", { maxReferences: 0 }, { references: [data] }, "input_references"],
    ["more references", { maxReferences: 1 }, { references: [data, data] }, "input_references"],
    ["other pixels", poor, { size: { ...anySize, pixels: { width: 1024, height: 1025 } } }, "size"],
    ["pixels beyond", {}, { size: { ...anySize, pixels: { width: 9000, height: 100 } } }, "size"],
    ["transparency", { backgrounds: ["opaque"] }, { background: "transparent" }, "background"],
    ["markup", {}, { format: "svg" }, "output_format"],
    ["pixels out of markup", { formats: ["svg"] }, { format: "png" }, "output_format"],
    [
      "transparency out of jpeg",
      { formats: ["jpeg"] },
      { background: "transparent", format: "webp" },
      "output_format",
    ],
  ])("%s", ([, image, request, path]) => {
    expect(route(imageRequest(request), imageEndpoint({ image }))).toEqual(unsupported(path));
  });

  test("what another endpoint can", () => {
    const able = imageEndpoint({ providerSlug: "zenith" });
    expect(route(imageRequest({ n: 2 }), imageEndpoint({ image: poor }), able)).toEqual(["zenith"]);
  });

  test("characters, counted as code points", () => {
    const short = imageEndpoint({ image: { maxPromptCharacters: 2 } });
    expect(route(imageRequest({ prompt: "😀😀" }), short)).toEqual(["acme"]);
    expect(route(imageRequest({ prompt: "😀😀😀" }), short)).toEqual(unsupported("prompt"));
  });
});

describe("a model", () => {
  const unknown = { reason: ErrorReason.MODEL_UNKNOWN, paths: ["model"] };

  test("that nobody offers is unknown", () => {
    expect(route(imageRequest({ model: "acme/pen" }), imageEndpoint())).toEqual(unknown);
  });

  test("of the other medium is unknown here", () => {
    const speaks = speechEndpoint();
    const model = { id: speaks.model, permaslug: "p", name: "n", description: "d", createdUnixS: 0 };
    const catalog = new Catalog([{ ...model, medium: "speech" }], [speaks]);
    expect(catalog.isKnownModel(speaks.model)).toBe(true);
    expect(() =>
      candidatesFor(imageRequest({ model: speaks.model }), { catalog, health, providers, random }, noKeys),
    ).toThrow("image model");
  });

  test("of which preferences leave nobody has no endpoint left", () => {
    const request = imageRequest({ preferences: preferences({ only: ["zenith"] }) });
    expect(route(request, imageEndpoint())).toEqual({ reason: ErrorReason.NO_ENDPOINT_LEFT, paths: [] });
  });
});

test("the price to sort by is that of the whole request", () => {
  const price = (part: Partial<ImagePrice>): ImagePrice => ({
    billable: "output_image",
    unit: "image",
    variant: "",
    nanoUsdPerMillion: 1_000n,
    mostTokensEach: 0n,
    ...part,
  });
  const each = imageEndpoint({ prices: [price({ nanoUsdPerMillion: 3_000_000n })] });
  const once = imageEndpoint({
    providerSlug: "zenith",
    prices: [price({ unit: "request", nanoUsdPerMillion: 5_000_000n })],
  });
  const cheapest = (n: number) =>
    route(imageRequest({ n, preferences: preferences({ sort: ProviderSort.PRICE }) }), each, once);
  expect(cheapest(1)).toEqual(["acme", "zenith"]);
  expect(cheapest(2)).toEqual(["zenith", "acme"]);
});

test("a mask is for endpoints that take one, and counts as a reference in the price", () => {
  const source = { kind: "data", bytes: new Uint8Array(1) } as const;
  const request = imageRequest({ references: [source], mask: source });
  const plain = imageEndpoint({ providerSlug: "plain" });
  const masking = imageEndpoint({ providerSlug: "masking", image: { mask: true } });
  expect(route(request, plain, masking)).toEqual(["masking"]);
  expect(route(request, plain)).toMatchObject({ paths: ["mask"] });
  expect(askedOf(masking, request).references).toBe(2);
});

describe("what an endpoint is asked", () => {
  const plan = (image: Partial<ImageCapabilities>, request: Partial<ImageRequest>) =>
    planCall(imageEndpoint({ image }), imageRequest(request), { references: [] });

  test("is all of the request where it can do all of it", () => {
    const endpoint = imageEndpoint({ passthrough: ["style"], settings: { a: 1 } });
    const reference = { bytes: new Uint8Array(1), mediaType: "image/png", width: 1, height: 1 } as const;
    const request = imageRequest({
      size: { ...anySize, aspectRatio: "2:1", resolution: "2K" },
      background: "opaque",
      n: 3,
      compression: 50,
      format: "webp",
      quality: "high",
      seed: 7,
      stream: true,
      preferences: preferences({
        options: { acme: { style: "oil", size: "1x1" }, zenith: { style: "ink" } },
      }),
    });
    expect(planCall(endpoint, request, { references: [reference] })).toEqual({
      call: {
        upstreamModel: "brush-1",
        prompt: "A boat.",
        n: 3,
        size: { width: 2896, height: 1448 },
        shape: { aspectRatio: "2:1", resolution: "2K" },
        quality: "high",
        background: "opaque",
        format: "webp",
        compression: 50,
        seed: 7,
        references: [reference],
        stream: true,
        options: { style: "oil" },
        settings: { a: 1 },
      },
      format: "webp",
      compression: undefined,
      ignoredParameters: ["provider.options.acme.size"],
    });
  });

  test("has the wishes that it lets through; the others are named", () => {
    const request = imageRequest({ wishes: { moderation: "low", input_fidelity: "high" }, partialImages: 1 });
    const endpoint = imageEndpoint({ passthrough: ["moderation"] });
    const mask = { bytes: new Uint8Array(2), mediaType: "image/png", width: 1, height: 1 } as const;
    const { call, ignoredParameters } = planCall(endpoint, request, { references: [], mask });
    expect(call).toMatchObject({ options: { moderation: "low" }, mask, partialImages: 1 });
    expect(ignoredParameters).toEqual(["input_fidelity"]);
  });

  test("leaves out and names what has no effect there", () => {
    const planned = plan(poor, {
      size: { ...anySize, aspectRatio: "16:9", resolution: "4K" },
      background: "opaque",
      compression: 50,
      quality: "low",
      seed: 0,
      stream: true,
    });
    expect(planned.ignoredParameters).toEqual([
      "aspect_ratio",
      "output_compression",
      "quality",
      "resolution",
      "seed",
      "stream",
    ]);
    expect(planned.call).toMatchObject({
      size: { width: 1024, height: 1024 },
      background: "auto",
      compression: undefined,
      quality: "auto",
      seed: undefined,
      stream: false,
    });
  });

  test.for<[string, Partial<ImageCapabilities>, Partial<ImageRequest>]>([
    ["nothing asked", poor, {}],
    ["wishes that the one size meets", poor, { size: { ...anySize, aspectRatio: "1:1", resolution: "1K" } }],
    ["compression of webp", {}, { format: "webp", compression: 0 }],
    ["compression that is done here", poor, { format: "jpeg", compression: 30 }],
    ["clamped wishes", {}, { size: { ...anySize, aspectRatio: "21:9" } }],
  ])("ignores nothing of %s", ([, image, request]) => {
    expect(plan(image, request).ignoredParameters).toEqual([]);
  });

  test.for<[string, Partial<ImageCapabilities>, Partial<ImageRequest>]>([
    ["png", {}, { format: "png", compression: 50 }],
    ["svg", { formats: ["svg"] }, { format: "svg", compression: 50 }],
    ["an upstream without control", { compression: false }, { format: "jpeg", compression: 50 }],
  ])("has no use for compression with %s", ([, image, request]) => {
    const planned = plan(image, request);
    expect(planned.ignoredParameters).toEqual(["output_compression"]);
    expect([planned.call.compression, planned.compression]).toEqual([undefined, undefined]);
  });

  test("has no previews of more images than the upstream streams", () => {
    const streamed = (n: number) => plan({ maxStreamedN: 2 }, { n, stream: true });
    expect([streamed(2).call.stream, streamed(2).ignoredParameters]).toEqual([true, []]);
    expect([streamed(3).call.stream, streamed(3).ignoredParameters]).toEqual([false, ["stream"]]);
  });

  test.for<[ImageCapabilities["formats"], ImageRequest["format"], ImageRequest["background"], string]>([
    [["jpeg", "png"], "webp", "auto", "png"],
    [["jpeg", "webp"], "png", "auto", "webp"],
    [["jpeg"], "png", "auto", "jpeg"],
    [["svg", "jpeg"], "webp", "auto", "jpeg"],
    [["jpeg", "webp"], "png", "transparent", "webp"],
    [["png", "jpeg"], "jpeg", "auto", "jpeg"],
  ])("is, of %j for %s with background %s, %s", ([formats, format, background, native]) => {
    const planned = plan({ formats }, { format, background, compression: 40 });
    expect([planned.call.format, planned.format]).toEqual([native, format]);
    const encodesHere = native !== format && format !== "png";
    expect(planned.compression).toBe(encodesHere ? 40 : undefined);
  });
});
