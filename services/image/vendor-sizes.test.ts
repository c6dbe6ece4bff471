import sharp from "sharp";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import type { PixelSize } from "../../providers/catalog/image.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { builtInProviders } from "../../providers/manifests.ts";
import { imageRequest } from "../../test/fakes/image-scene.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import { startSeedreamUpstream } from "../../test/upstreams/byteplus.ts";
import { startRecraftUpstream } from "../../test/upstreams/recraft.ts";
import { startGrokUpstream } from "../../test/upstreams/xai.ts";
import { planCall } from "./plan.ts";
import { resolveSize } from "./size.ts";

let http: OutboundHttp;
beforeAll(() => {
  http = createOutboundHttp();
});
afterAll(async () => await http.close());

async function endpointsOf(providerSlug: string): Promise<readonly ImageEndpoint[]> {
  const providerSlugs = builtInProviders.map(({ slug }) => slug);
  const catalog = await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs });
  const endpoints = catalog.imageModels().flatMap((model) => model.endpoints);
  return endpoints.filter((endpoint) => endpoint.providerSlug === providerSlug);
}

function sizesOf({ image }: ImageEndpoint): readonly PixelSize[] {
  return image.sizes.kind === "list" ? image.sizes.sizes : [];
}

/** What an endpoint's stand-in makes of a request for these pixels. */
async function draw(baseUrl: string, endpoint: ImageEndpoint, pixels: PixelSize | undefined) {
  const manifest = builtInProviders.find(({ slug }) => slug === endpoint.providerSlug);
  const adapter = (await manifest?.create({ http, fetchResult: noResults }))?.image;
  const size = { aspectRatio: undefined, resolution: undefined, pixels };
  const format = endpoint.image.formats[0] ?? "png";
  const { call } = planCall(endpoint, imageRequest({ size, format }), { references: [] });
  const connection = { baseUrl, apiKey: "test-key" };
  const context = { connection, signal: new AbortController().signal, onSent: () => undefined };
  const [image] = await Array.fromAsync((await adapter?.generate(call, context))?.output ?? []);
  if (image?.kind !== "image") throw new Error("no image");
  return image;
}

test("a vendor that knows ratios and tiers only makes the pixels that its catalogue lists", async () => {
  const upstream = await startGrokUpstream();
  const endpoints = await endpointsOf("xai");
  expect(endpoints.map((endpoint) => sizesOf(endpoint).length)).toEqual([26, 26]);
  // They list the same.
  for (const endpoint of endpoints.slice(0, 1)) {
    for (const pixels of sizesOf(endpoint)) {
      const { bytes } = await draw(upstream.baseUrl, endpoint, pixels);
      const { width, height } = await sharp(bytes).metadata();
      expect({ width, height }).toEqual(pixels);
    }
  }
  await upstream.close();
});

test("a vendor takes each size that its catalogue lists, and makes the format that it says", async () => {
  const upstream = await startRecraftUpstream();
  const endpoints = await endpointsOf("recraft");
  expect(endpoints).toHaveLength(5);
  for (const endpoint of endpoints) {
    const { mediaType } = await draw(upstream.baseUrl, endpoint, undefined);
    expect(endpoint.image.formats).toEqual([mediaType.replace(/^image\/|\+xml$/g, "")]);
    for (const pixels of sizesOf(endpoint)) {
      // Only what the vendor takes comes so far.
      upstream.next({ refusal: { status: 418, body: "" } });
      await expect(draw(upstream.baseUrl, endpoint, pixels)).rejects.toMatchObject({ status: 418 });
    }
  }
  await upstream.close();
});

test("a vendor takes every ratio of every tier that its catalogue names", async () => {
  const upstream = await startSeedreamUpstream();
  const baseUrl = `${upstream.baseUrl}/api/v3`;
  const endpoints = await endpointsOf("byteplus");
  expect(endpoints).not.toEqual([]);
  for (const endpoint of endpoints) {
    const { sizes } = endpoint.image;
    if (sizes.kind !== "grid") throw new Error("a grid is expected");
    for (const resolution of sizes.resolutions) {
      for (const aspectRatio of sizes.aspectRatios) {
        const pixels = resolveSize(endpoint.image, { aspectRatio, resolution, pixels: undefined });
        // Only what the vendor takes comes so far.
        upstream.next({ error: { status: 418, body: {} } });
        const drawing = draw(baseUrl, endpoint, pixels);
        await expect(drawing, `${aspectRatio} in ${resolution}`).rejects.toMatchObject({ status: 418 });
      }
    }
  }
  await upstream.close();
});
