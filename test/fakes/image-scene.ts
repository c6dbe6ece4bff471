import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import type { GenerateDependencies } from "../../services/image/generate.ts";
import type { ImageRequest } from "../../services/image/image-request.ts";
import { DecodeBudget } from "../../services/image/references/decode-budget.ts";
import {
  type FakePainter,
  fakeImageProviders,
  type ImageEndpointChanges,
  imageCatalogOf,
  imageEndpoint,
} from "./fake-image.ts";
import { FakePaidRequests } from "./fake-paid-requests.ts";

/** What somebody asks for who says as little as possible, with changes. */
export function imageRequest(changes: Partial<ImageRequest> = {}): ImageRequest {
  return {
    model: "acme/brush",
    prompt: "A boat.",
    size: { aspectRatio: undefined, resolution: undefined, pixels: undefined },
    background: "auto",
    references: [],
    n: 1,
    compression: undefined,
    format: "png",
    quality: "auto",
    seed: undefined,
    stream: false,
    preferences: undefined,
    ...changes,
  };
}

/** A process of its own whose one model has an endpoint for each painter, by provider; best first. */
export function imageDependencies(
  painters: Readonly<Record<string, FakePainter>>,
  { endpoint, ...changes }: Partial<GenerateDependencies> & { readonly endpoint?: ImageEndpointChanges } = {},
): GenerateDependencies {
  const endpoints = Object.keys(painters).map((providerSlug) => imageEndpoint({ providerSlug, ...endpoint }));
  return {
    catalog: imageCatalogOf(...endpoints),
    providers: { ...fakeImageProviders(painters), takesOwnKeys: () => true },
    health: new EndpointHealth({ clock }),
    room: new DecodeBudget().of("a key"),
    limits: { timeoutMs: 60_000 },
    clock,
    random: () => 0.5,
    paid: new FakePaidRequests(),
    loadReferences: async () => [],
    ...changes,
  };
}
