import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { codePoints } from "../../lib/generation/code-points.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import { type AskedImages, mostImagesCanCost } from "../../providers/catalog/endpoint-price.ts";
import type { ImageCapabilities, PixelSize } from "../../providers/catalog/image.ts";
import type { ImageCall, ImageFormat } from "../../providers/contract.ts";
import type { Candidate } from "../../providers/routing/candidate.ts";
import { passedThrough, textCharactersOf } from "../../providers/routing/passthrough-options.ts";
import { type CandidateSources, candidatesOfModel } from "../../providers/routing/router.ts";
import { canTranscode } from "./encode.ts";
import type { ImageRequest } from "./image-request.ts";
import { maxImagePixels } from "./references/decode-budget.ts";
import type { CheckedReference } from "./references/reference-check.ts";
import { offeredRatios, offeredTiers, offersSize, resolveShape, resolveSize, tierOf } from "./size.ts";

/** What one endpoint would be asked, and what of the request has no effect there. */
export interface PlannedCall {
  readonly call: ImageCall;
  /** What the client gets; another than the call's where this service transcodes. */
  readonly format: ImageFormat;
  /** For an image that this service encodes; undefined: its default. */
  readonly compression: number | undefined;
  /** Parameters without effect, by their REST names. */
  readonly ignoredParameters: readonly string[];
}

/**
 * The endpoints that may serve a request, best first. Throws `model_unknown`, `no_endpoint_left`,
 * `unsupported_parameter` or `provider_overloaded`.
 */
export function candidatesFor(
  request: ImageRequest,
  sources: CandidateSources,
  ownKeys: ReadonlyMap<string, string>,
): readonly Candidate<ImageEndpoint>[] {
  return candidatesOfModel(
    {
      medium: "image",
      offers: sources.catalog.imageModel(request.model)?.endpoints ?? [],
      preferences: request.preferences,
      seed: request.seed,
      unsupported: ({ image }) => unsupportedBy(image, request),
      price: (endpoint) => mostCostOf(endpoint, request),
    },
    sources,
    ownKeys,
  );
}

/** The declared upper bound of what a request costs at an endpoint, nano-USD. */
export function mostCostOf(endpoint: ImageEndpoint, request: ImageRequest): bigint {
  return mostImagesCanCost(endpoint.prices, askedOf(endpoint, request));
}

function unsupportedBy(image: ImageCapabilities, request: ImageRequest): Issue[] {
  const { maxPromptCharacters, maxN, maxReferences } = image;
  const issues: Issue[] = [];
  const atMost = (path: string, value: number, most: number, what: string) => {
    if (value > most) issues.push({ path, message: `must be at most ${most}${what} for this model` });
  };
  atMost("prompt", codePoints(request.prompt), maxPromptCharacters, " characters");
  atMost("n", request.n, maxN, "");
  if (maxReferences === 0 && request.references.length > 0) {
    issues.push({ path: "input_references", message: "are not taken by this model" });
  } else {
    atMost("input_references", request.references.length, maxReferences, " images");
  }
  if (request.mask !== undefined && !image.mask) {
    issues.push({ path: "mask", message: "is not taken by this model" });
  }
  if (!offersSize(image, request.size)) {
    issues.push({ path: "size", message: "is not a size that this model makes" });
  }
  if (request.background === "transparent" && !image.backgrounds.includes("transparent")) {
    issues.push({ path: "background", message: "transparent is not offered by this model" });
  }
  if (nativeFormat(image, request) === undefined) {
    issues.push({ path: "output_format", message: "is not offered by this model" });
  }
  return issues;
}

/** Best sources to transcode from: without loss, then with an alpha channel. */
const sources: readonly ImageFormat[] = ["png", "webp", "jpeg"];

/** What to ask the endpoint for: the format itself if it makes it, else what it can be made from. */
function nativeFormat(
  { formats }: ImageCapabilities,
  { format, background }: ImageRequest,
): ImageFormat | undefined {
  if (formats.includes(format)) return format;
  return sources.find(
    (source) =>
      formats.includes(source) &&
      canTranscode(source, format) &&
      !(background === "transparent" && source === "jpeg"),
  );
}

/** The images that a request starts from, in hand. */
export interface LoadedReferences {
  readonly references: readonly CheckedReference[];
  readonly mask?: CheckedReference | undefined;
}

/** Those of the candidates that take references so large. Throws `reference_refused` where none does. */
export function takingReferences(
  candidates: readonly Candidate<ImageEndpoint>[],
  { references, mask }: LoadedReferences,
): readonly Candidate<ImageEndpoint>[] {
  const images = mask === undefined ? references : [...references, mask];
  const able = candidates.filter(({ image }) =>
    images.every((reference) => megapixelsOf(reference, image) <= mostReferenceMegapixels(image)),
  );
  if (able.length > 0) return able;
  const most = Math.max(...candidates.map(({ image }) => mostReferenceMegapixels(image)));
  const issue = {
    path: "input_references",
    message: `have more than ${most} megapixels, which this model takes not`,
  };
  throw DomainError.invalid([issue], ErrorReason.REFERENCE_REFUSED);
}

/** What to ask an endpoint that `candidatesFor` returned. */
export function planCall(
  endpoint: ImageEndpoint,
  request: ImageRequest,
  { references, mask }: LoadedReferences,
): PlannedCall {
  const { image } = endpoint;
  const native = nativeFormat(image, request) ?? request.format;
  const { options, ignored } = passedThrough(endpoint, request.preferences);
  const wishes = wishesAt(endpoint, request);
  const isLossy = request.format === "jpeg" || request.format === "webp";
  const encodesHere = native !== request.format;
  const call: ImageCall = {
    upstreamModel: endpoint.upstreamModel,
    prompt: request.prompt,
    n: request.n,
    size: resolveSize(image, request.size),
    shape: resolveShape(image, request.size),
    quality: image.qualities.some((quality) => quality === request.quality) ? request.quality : "auto",
    background: image.backgrounds.some((known) => known === request.background) ? request.background : "auto",
    format: native,
    compression: isLossy && !encodesHere && image.compression ? request.compression : undefined,
    seed: image.seed ? request.seed : undefined,
    references,
    mask,
    partialImages: request.partialImages,
    stream: request.stream && image.streaming && request.n <= image.maxStreamedN,
    options: { ...wishes.options, ...options },
    settings: endpoint.settings,
  };
  const compression = isLossy && encodesHere ? request.compression : undefined;
  return {
    call,
    format: request.format,
    compression,
    ignoredParameters: [...ignoredBy(image, request, call, compression), ...wishes.ignored, ...ignored],
  };
}

/** The wishes that the endpoint lets through, and the names of the others. */
function wishesAt({ passthrough }: ImageEndpoint, { wishes = {} }: ImageRequest) {
  const taken = Object.entries(wishes).filter(([name]) => passthrough.includes(name));
  const ignored = Object.keys(wishes).filter((name) => !passthrough.includes(name));
  return { options: Object.fromEntries(taken), ignored };
}

function ignoredBy(
  image: ImageCapabilities,
  request: ImageRequest,
  call: ImageCall,
  compression: number | undefined,
): readonly string[] {
  const withoutEffect = {
    aspect_ratio: isFixed(offeredRatios(image), request.size.aspectRatio, request.size.pixels),
    output_compression: request.compression !== (call.compression ?? compression),
    quality: request.quality !== call.quality,
    resolution: isFixed(offeredTiers(image), request.size.resolution, request.size.pixels),
    seed: request.seed !== call.seed,
    stream: request.stream !== call.stream,
  };
  return Object.entries(withoutEffect).flatMap(([name, ignored]) => (ignored ? name : []));
}

/** Whether a wish meets an endpoint that has but one answer to it, and another one. */
function isFixed<T>(offered: readonly T[], wished: T | undefined, pixels: unknown): boolean {
  return pixels === undefined && wished !== undefined && offered.length === 1 && !offered.includes(wished);
}

const usualMegapixel = 1_000_000;

/** Begun megapixels of an image, as an endpoint's prices count them. */
export function megapixelsOf(
  { width, height }: PixelSize,
  { pixelsPerMegapixel = usualMegapixel }: ImageCapabilities,
): number {
  return Math.ceil((width * height) / pixelsPerMegapixel);
}

/** What a request may use at an endpoint, for the bound of its price. */
export function askedOf(endpoint: ImageEndpoint, request: ImageRequest): AskedImages {
  const { image } = endpoint;
  const size = resolveSize(image, request.size);
  const largest = size ?? { width: mostPixels(image), height: 1 };
  const references = request.references.length + (request.mask === undefined ? 0 : 1);
  return {
    images: request.n,
    megapixels: request.n * megapixelsOf(largest, image),
    references,
    referenceMegapixels: references * mostReferenceMegapixels(image),
    textCharacters:
      codePoints(request.prompt) + textCharactersOf(passedThrough(endpoint, request.preferences).options),
    variant: {
      ...(request.quality !== "auto" && { quality: request.quality }),
      ...(size !== undefined && { resolution: tierOf(size), size: `${size.width}x${size.height}` }),
    },
  };
}

function mostReferenceMegapixels({ maxReferenceMegapixels }: ImageCapabilities): number {
  return maxReferenceMegapixels ?? Math.ceil(maxImagePixels / usualMegapixel);
}

function mostPixels({ sizes }: ImageCapabilities): number {
  if (sizes.kind === "grid") return sizes.maxPixels;
  return Math.max(...sizes.sizes.map(({ width, height }) => width * height));
}
