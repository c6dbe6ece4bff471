import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type GenerateRequest,
  ImageResolution,
  type ReferenceImage,
} from "../../gen/media/image/v1/image_pb.ts";
import { attributionIssues, preferenceIssues } from "../../lib/generation/request-limits.ts";
import {
  imageBackgrounds,
  imageFormats,
  imageQualities,
  imageResolutions,
  maxCompression,
  maxImages,
  maxPartialImages,
  maxReferences,
} from "../../lib/limits/image-limits.ts";
import { wordOf } from "../../lib/limits/words.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { ImageFormat } from "../../providers/contract.ts";
import type { ImageRequest } from "./image-request.ts";
import type { ReferenceSource } from "./references/references.ts";
import { readSize, type SizeRequest } from "./size.ts";

const anySize: SizeRequest = { aspectRatio: undefined, resolution: undefined, pixels: undefined };

/**
 * Throws DomainError that names every fault by its field: `size_conflict` when the size fields contradict each
 * other and nothing else is wrong, otherwise `invalid_body`.
 */
export function fromProtoGenerateRequest(request: GenerateRequest): ImageRequest {
  const format = wordOr(imageFormats, request.outputFormat, "png");
  const background = wordOr(imageBackgrounds, request.background, "auto");
  const quality = wordOr(imageQualities, request.quality, "auto");
  const size = readSizeFields(request);
  const wishes = wishesOf(request);
  const faults = [
    ...textIssues(request),
    ...wordIssues({ output_format: format, background, quality }),
    ...numberIssues(request),
    ...backgroundIssues(background, format),
    ...referenceIssues(request.inputReferences),
    ...maskIssues(request),
    ...wishIssues(wishes),
    ...attributionIssues(request),
    ...preferenceIssues(request.provider),
  ];
  const sizeFaults = size.issues ?? [];
  if (faults.length > 0 || sizeFaults.length > 0) {
    const isConflict = faults.length === 0 && size.issues !== undefined && size.conflict;
    const reason = isConflict ? ErrorReason.SIZE_CONFLICT : ErrorReason.INVALID_BODY;
    throw DomainError.invalid([...faults, ...sizeFaults], reason);
  }
  return {
    model: request.model,
    prompt: request.prompt,
    size: size.request ?? anySize,
    background: background ?? "auto",
    references: request.inputReferences.flatMap(fromProtoReference),
    mask: request.mask === undefined ? undefined : fromProtoReference(request.mask)[0],
    n: request.n ?? 1,
    compression: request.outputCompression,
    format: format ?? "png",
    quality: quality ?? "auto",
    seed: request.seed === undefined ? undefined : Number(request.seed),
    stream: request.stream,
    partialImages: request.partialImages,
    ...(Object.keys(wishes).length === 0 ? {} : { wishes }),
    preferences: request.provider,
  };
}

/** The word of a value, `unset` where there is none; undefined when it is no value. */
function wordOr<W extends string>(
  table: Readonly<Record<W, number>>,
  value: number,
  unset: W,
): W | undefined {
  return value === 0 ? unset : wordOf(table, value);
}

function readSizeFields({ aspectRatio, resolution, size }: GenerateRequest): ReturnType<typeof readSize> {
  const tier = wordOf(imageResolutions, resolution);
  if (tier === undefined && resolution !== ImageResolution.IMAGE_RESOLUTION_UNSPECIFIED) {
    return { issues: [{ path: "resolution", message: "is not one of the tiers" }], conflict: false };
  }
  return readSize({ aspectRatio, resolution: tier, size });
}

function textIssues({ model, prompt }: GenerateRequest): Issue[] {
  return Object.entries({ model, prompt })
    .filter(([, text]) => text === "")
    .map(([path]) => ({ path, message: "is required" }));
}

function wordIssues(words: Readonly<Record<string, string | undefined>>): Issue[] {
  return Object.entries(words)
    .filter(([, word]) => word === undefined)
    .map(([path]) => ({ path, message: "is not one of the values" }));
}

function numberIssues({ n, outputCompression, seed, partialImages }: GenerateRequest): Issue[] {
  const issues: Issue[] = [];
  if (n !== undefined && (n < 1 || n > maxImages)) {
    issues.push({ path: "n", message: `must be from 1 to ${maxImages}` });
  }
  if (outputCompression !== undefined && (outputCompression < 0 || outputCompression > maxCompression)) {
    issues.push({ path: "output_compression", message: `must be from 0 to ${maxCompression}` });
  }
  if (seed !== undefined && !Number.isSafeInteger(Number(seed))) {
    issues.push({ path: "seed", message: "must be a whole number from -(2^53 - 1) to 2^53 - 1" });
  }
  if (partialImages !== undefined && (partialImages < 0 || partialImages > maxPartialImages)) {
    issues.push({ path: "partial_images", message: `must be from 0 to ${maxPartialImages}` });
  }
  return issues;
}

function backgroundIssues(background: string | undefined, format: ImageFormat | undefined): Issue[] {
  const hasAlpha = format === undefined || format === "png" || format === "webp";
  if (background !== "transparent" || hasAlpha) return [];
  return [{ path: "background", message: "transparent needs the output_format png or webp" }];
}

function referenceIssues(references: readonly ReferenceImage[]): Issue[] {
  if (references.length > maxReferences) {
    return [{ path: "input_references", message: `must be at most ${maxReferences} images` }];
  }
  return references.flatMap(({ source }, index) =>
    source.case === undefined || source.value.length === 0
      ? { path: `input_references.${index}`, message: "is required" }
      : [],
  );
}

function maskIssues({ mask, inputReferences }: GenerateRequest): Issue[] {
  if (mask === undefined) return [];
  if (mask.source.case === undefined || mask.source.value.length === 0) {
    return [{ path: "mask", message: "is required" }];
  }
  return inputReferences.length > 0 ? [] : [{ path: "mask", message: "needs an image that it is for" }];
}

/** The words of the parameters that only some endpoints let through. */
const wishWords: Readonly<Record<string, readonly string[]>> = {
  moderation: ["auto", "low"],
  input_fidelity: ["low", "high"],
};

function wishesOf({ moderation, inputFidelity }: GenerateRequest): Readonly<Record<string, string>> {
  const wishes = Object.entries({ moderation, input_fidelity: inputFidelity });
  return Object.fromEntries(wishes.filter(([, word]) => word !== ""));
}

function wishIssues(wishes: Readonly<Record<string, string>>): Issue[] {
  return Object.entries(wishes).flatMap(([path, word]) => {
    const words = wishWords[path] ?? [];
    return words.includes(word) ? [] : { path, message: `must be one of ${words.join(", ")}` };
  });
}

function fromProtoReference({ source }: ReferenceImage): ReferenceSource[] {
  switch (source.case) {
    case "data":
      return [{ kind: "data", bytes: source.value }];
    case "url":
      return [{ kind: "url", url: source.value }];
    default:
      return [];
  }
}
