import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ImageModelSchema, type ParameterCapability } from "../../gen/media/image/v1/image_pb.ts";
import { systemClock } from "../../lib/runtime/clock.ts";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import type { ImageCapabilities } from "../../providers/catalog/image.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { builtInProviders } from "../../providers/manifests.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { imageCatalogOf, imageEndpoint } from "../../test/fakes/fake-image.ts";
import { listImageModels } from "./discover.ts";

const unseen = { health: new EndpointHealth({ clock: systemClock }), providers: { operatorKeys: () => 1 } };

const listed = (...endpoints: ImageEndpoint[]) =>
  listImageModels(imageCatalogOf(...endpoints), unseen).map((model) => create(ImageModelSchema, model));

/** A list of values, `[min, max]` or true, by name. */
function plain(capabilities: readonly ParameterCapability[] = []) {
  return Object.fromEntries(
    capabilities.map(({ name, capability }) => {
      if (capability.case === "range") return [name, [capability.value.min, capability.value.max]];
      return [name, capability.case === "enumValues" ? capability.value.values : capability.value];
    }),
  );
}

const poor: Partial<ImageCapabilities> = {
  formats: ["png"],
  sizes: { kind: "list", sizes: [{ width: 1536, height: 1024 }] },
  maxN: 1,
  qualities: [],
  backgrounds: [],
  compression: false,
  seed: false,
  maxReferences: 0,
  streaming: false,
};

test("a model is listed with all that the catalogue says of it", () => {
  const price = {
    billable: "output_image",
    unit: "image",
    nanoUsdPerMillion: 7n,
    mostTokensEach: 0n,
  } as const;
  const endpoint = imageEndpoint({
    passthrough: ["style"],
    prices: [
      { ...price, variant: "high" },
      { ...price, variant: "", unit: "megapixel" },
    ],
  });
  const [model] = listed(endpoint);
  expect(model).toMatchObject({
    id: "acme/brush",
    permaslug: "acme/brush-2030-01-01",
    name: "ACME/BRUSH",
    description: "Draws as acme/brush.",
    createdUnixS: 1_900_000_000n,
    inputModalities: ["text", "image"],
    outputModalities: ["image"],
    supportsStreaming: true,
    endpoints: [
      {
        endpointId: "endpoint-of-acme",
        providerSlug: "acme",
        providerName: "ACME",
        providerTag: "",
        allowedPassthroughParameters: ["style"],
        supportsStreaming: true,
        prices: [
          { billable: "output_image", unit: "image", nanoUsdPerMillion: 7n, variant: "high" },
          { billable: "output_image", unit: "megapixel", nanoUsdPerMillion: 7n, variant: "" },
        ],
      },
    ],
  });
});

test("an endpoint is listed with all that can be set on it, and a model of one endpoint alike", () => {
  const [model] = listed(imageEndpoint());
  expect(plain(model?.endpoints[0]?.supportedParameters)).toEqual({
    aspect_ratio: ["auto", "1:1", "2:1", "1:2", "16:9"],
    background: ["auto", "transparent", "opaque"],
    input_references: [1, 4],
    n: [1, 10],
    output_compression: [0, 100],
    output_format: ["png", "jpeg", "webp"],
    quality: ["auto", "low", "medium", "high"],
    resolution: ["512", "1K", "2K", "4K"],
    seed: true,
    size: true,
    stream: true,
  });
  expect(plain(model?.supportedParameters)).toEqual(plain(model?.endpoints[0]?.supportedParameters));
});

describe("an endpoint", () => {
  test("has no parameter without effect", () => {
    const [model] = listed(imageEndpoint({ image: poor }));
    expect(plain(model?.supportedParameters)).toEqual({
      aspect_ratio: ["auto", "3:2"],
      n: [1, 1],
      output_compression: [0, 100],
      output_format: ["png", "jpeg", "webp"],
      resolution: ["1K"],
      size: ["1536x1024"],
    });
    expect(model).toMatchObject({ inputModalities: ["text"], supportsStreaming: false });
  });

  test.for<[ImageCapabilities["formats"], boolean, readonly string[], boolean]>([
    [["png"], false, ["png", "jpeg", "webp"], true],
    [["png", "jpeg", "webp"], false, ["png", "jpeg", "webp"], false],
    [["png", "jpeg", "webp"], true, ["png", "jpeg", "webp"], true],
    [["svg"], true, ["svg"], false],
    [["webp", "svg"], false, ["png", "jpeg", "webp", "svg"], true],
  ])("that makes %j, with control of compression %s, offers %j", ([formats, compression, offered, takes]) => {
    const [model] = listed(imageEndpoint({ image: { formats, compression } }));
    const parameters = plain(model?.supportedParameters);
    expect(parameters.output_format).toEqual(offered);
    expect(parameters.output_compression !== undefined).toBe(takes);
  });
});

test("a model offers what at least one endpoint offers", () => {
  const second = imageEndpoint({ providerSlug: "zenith", image: { qualities: ["high"], maxN: 4 } });
  const [model] = listed(imageEndpoint({ image: poor }), second);
  expect(plain(model?.supportedParameters)).toMatchObject({
    aspect_ratio: ["auto", "3:2", "1:1", "2:1", "1:2", "16:9"],
    n: [1, 4],
    quality: ["auto", "high"],
    size: true,
    stream: true,
  });
  expect(model).toMatchObject({ inputModalities: ["text", "image"], supportsStreaming: true });
});

test("everything of the catalogue that comes along can be listed", async () => {
  const catalog = await loadCatalog({
    directories: [builtInCatalogDirectory],
    providerSlugs: builtInProviders.map(({ slug }) => slug),
  });
  const models = listImageModels(catalog, unseen).map((model) => create(ImageModelSchema, model));
  expect(models.map(({ id }) => id)).toEqual(catalog.imageModels().map(({ id }) => id));
  expect(models.map(({ id }) => id)).toContain("local/postcard");
  for (const model of models) {
    const { n, output_format } = plain(model.supportedParameters);
    expect(n, model.id).toEqual(expect.any(Array));
    // What makes markup alone is not drawn from it here.
    expect([["svg"], expect.arrayContaining(["png"])], model.id).toContainEqual(output_format);
    for (const { prices } of model.endpoints) expect(prices.length, model.id).toBeGreaterThan(0);
  }
});
