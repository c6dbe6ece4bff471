import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  GenerateRequestSchema,
  ImageBackground,
  ImageFormat,
  ImageQuality,
  ImageResolution,
} from "../../gen/media/image/v1/image_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { fromProtoGenerateRequest } from "./convert.ts";

type RequestFields = MessageInitShape<typeof GenerateRequestSchema>;

function convert(fields: RequestFields) {
  return fromProtoGenerateRequest(
    create(GenerateRequestSchema, { prompt: "A boat.", model: "acme/brush", ...fields }),
  );
}

function refusalOf(fields: RequestFields): { reason: ErrorReason; paths: readonly string[] } | undefined {
  try {
    convert(fields);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof DomainError)) throw thrown;
    return { reason: thrown.reason, paths: thrown.issues.map(({ path }) => path) };
  }
}

const data = (bytes: number) => ({
  source: { case: "data" as const, value: new Uint8Array(bytes).fill(1) },
});
const url = (value: string) => ({ source: { case: "url" as const, value } });
const references = (count: number) => Array.from({ length: count }, () => data(1));

describe("a request", () => {
  test("becomes what it says", () => {
    const request = convert({
      aspectRatio: "16:9",
      background: ImageBackground.TRANSPARENT,
      inputReferences: [url("https://example.com/a.png"), data(3)],
      n: 3,
      outputCompression: 70,
      outputFormat: ImageFormat.WEBP,
      quality: ImageQuality.HIGH,
      resolution: ImageResolution.IMAGE_RESOLUTION_2K,
      seed: 42n,
      size: "2K",
      stream: true,
      provider: { only: ["acme"] },
    });
    expect(request).toMatchObject({
      model: "acme/brush",
      prompt: "A boat.",
      size: { aspectRatio: "16:9", resolution: "2K", pixels: undefined },
      background: "transparent",
      references: [
        { kind: "url", url: "https://example.com/a.png" },
        { kind: "data", bytes: new Uint8Array([1, 1, 1]) },
      ],
      n: 3,
      compression: 70,
      format: "webp",
      quality: "high",
      seed: 42,
      stream: true,
      preferences: { only: ["acme"] },
    });
  });

  test("has its defaults", () => {
    expect(convert({})).toEqual({
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
    });
  });

  test.for<[string, RequestFields]>([
    ["one image", { n: 1 }],
    ["ten images", { n: 10 }],
    ["no compression", { outputCompression: 0 }],
    ["full compression", { outputCompression: 100 }],
    ["16 references", { inputReferences: references(16) }],
    ["a mask", { inputReferences: [data(1)], mask: data(1) }],
    ["no previews", { partialImages: 0 }],
    ["less moderation", { moderation: "low", inputFidelity: "high" }],
    ["the largest seed", { seed: 2n ** 53n - 1n }],
    ["the smallest seed", { seed: -(2n ** 53n) + 1n }],
    ["a transparent png", { background: ImageBackground.TRANSPARENT }],
    ["an opaque svg", { background: ImageBackground.OPAQUE, outputFormat: ImageFormat.SVG }],
    ["a prompt of a blank", { prompt: " " }],
  ])("may have %s", ([, fields]) => {
    expect(refusalOf(fields)).toBeUndefined();
  });

  test("keeps a reference's bytes as they are", () => {
    const bytes = new Uint8Array(8);
    const [reference] = convert({ inputReferences: [{ source: { case: "data", value: bytes } }] }).references;
    expect(reference).toEqual({ kind: "data", bytes });
    expect(reference?.kind === "data" && reference.bytes.buffer).toBe(bytes.buffer);
  });
});

describe("a request is refused for", () => {
  const transparent = ImageBackground.TRANSPARENT;
  const tooMany = { provider: { order: Array.from({ length: 33 }, () => "acme") } };

  test.for<[string, RequestFields, string]>([
    ["no prompt", { prompt: "" }, "prompt"],
    ["no model", { model: "" }, "model"],
    ["no image", { n: 0 }, "n"],
    ["eleven images", { n: 11 }, "n"],
    ["a negative number of images", { n: -1 }, "n"],
    ["too little compression", { outputCompression: -1 }, "output_compression"],
    ["too much compression", { outputCompression: 101 }, "output_compression"],
    ["a seed beyond doubles", { seed: 2n ** 53n }, "seed"],
    ["a seed far beyond doubles", { seed: 2n ** 63n - 1n }, "seed"],
    ["a seed below doubles", { seed: -(2n ** 53n) }, "seed"],
    ["an unknown format", { outputFormat: 9 as ImageFormat }, "output_format"],
    ["an unknown background", { background: 9 as ImageBackground }, "background"],
    ["an unknown quality", { quality: 9 as ImageQuality }, "quality"],
    ["an unknown tier", { resolution: 9 as ImageResolution }, "resolution"],
    ["a transparent jpeg", { background: transparent, outputFormat: ImageFormat.JPEG }, "background"],
    ["a transparent svg", { background: transparent, outputFormat: ImageFormat.SVG }, "background"],
    ["17 references", { inputReferences: references(17) }, "input_references"],
    ["a reference of nothing", { inputReferences: [data(1), {}] }, "input_references.1"],
    ["a reference without bytes", { inputReferences: [data(0)] }, "input_references.0"],
    ["a reference without URL", { inputReferences: [url("")] }, "input_references.0"],
    ["a mask of nothing", { inputReferences: [data(1)], mask: {} }, "mask"],
    ["a mask for no reference", { mask: data(1) }, "mask"],
    ["more previews than there are", { partialImages: 4 }, "partial_images"],
    ["an unknown moderation", { moderation: "none" }, "moderation"],
    ["an unknown fidelity", { inputFidelity: "full" }, "input_fidelity"],
    ["an unknown ratio", { aspectRatio: "5:2" }, "aspect_ratio"],
    ["an unknown size", { size: "big" }, "size"],
    ["a long user", { user: "u".repeat(257) }, "user"],
    ["U+0000 in its user", { user: "a\u0000b" }, "user"],
    ["U+0000 in its session", { sessionId: "\u0000" }, "session_id"],
    ["U+0000 in its trace", { trace: { span: ["\u0000"] } }, "trace"],
    ["too many providers", tooMany, "provider.order"],
  ])("%s", ([, fields, path]) => {
    expect(refusalOf(fields)).toEqual({ reason: ErrorReason.INVALID_BODY, paths: [path] });
  });

  test.for<[string, RequestFields, readonly string[]]>([
    ["two tiers", { size: "2K", resolution: ImageResolution.IMAGE_RESOLUTION_1K }, ["resolution"]],
    ["pixels of another ratio", { size: "1024x1024", aspectRatio: "16:9" }, ["aspect_ratio"]],
    [
      "pixels of another tier and ratio",
      { size: "1024x1024", aspectRatio: "16:9", resolution: ImageResolution.IMAGE_RESOLUTION_4K },
      ["resolution", "aspect_ratio"],
    ],
  ])("%s, as a conflict", ([, fields, paths]) => {
    expect(refusalOf(fields)).toEqual({ reason: ErrorReason.SIZE_CONFLICT, paths });
  });

  test("all of its faults at once, which is more than a conflict", () => {
    const refusal = refusalOf({
      prompt: "",
      model: "",
      n: 0,
      outputCompression: 500,
      seed: 2n ** 60n,
      outputFormat: 9 as ImageFormat,
      size: "1024x1024",
      aspectRatio: "16:9",
      user: "u".repeat(300),
    });
    expect(refusal).toEqual({
      reason: ErrorReason.INVALID_BODY,
      paths: ["model", "prompt", "output_format", "n", "output_compression", "seed", "user", "aspect_ratio"],
    });
  });
});
