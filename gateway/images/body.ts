import { create } from "@bufbuild/protobuf";
import Type, { type Static } from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  ImageResolution,
  type ReferenceImage,
  ReferenceImageSchema,
} from "../../gen/media/image/v1/image_pb.ts";
import { type DataUrlContent, isDataUrl, parseImageDataUrl } from "../../lib/http/data-url.ts";
import {
  imageBackgrounds,
  imageFormats,
  imageQualities,
  imageResolutions,
  maxCompression,
  maxImages,
  maxReferences,
} from "../../lib/limits/image-limits.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  checkFreeFields,
  checkText,
  generationFields,
  maxTextBytes,
  toProtoGeneration,
  withoutFieldNulls,
} from "../body/generation-fields.ts";
import { bodyRules, compileCheck, type JsonObject } from "../body/json-body.ts";
import { stringEnum } from "../schema/field-schemas.ts";

const maxUrlLength = 8192;

/** The URL of an image to start from. */
export const imageUrlSchema = Type.String({
  pattern: String.raw`^\s*([Dd][Aa][Tt][Aa]|[Hh][Tt][Tt][Pp][Ss]?):`,
  description: "`data:image/…;base64,…`, or an http or https URL of at most 8,192 characters.",
});
const urlWords = "is no data, http or https URL";

const referenceSchema = Type.Object({
  type: stringEnum(["image_url"]),
  image_url: Type.Object({ url: imageUrlSchema }),
});

/** An optional member of a body that is one of an enum's table, in its order. */
export function enumOf<T extends object>(table: T, description: string) {
  return Type.Optional(stringEnum(Object.keys(table) as (keyof T & string)[], { description }));
}

/** The body of POST /images. Unknown fields are ignored; null counts as absent. */
export const imagesBodySchema = Type.Object(
  {
    model: Type.String({ minLength: 1, description: "`<provider>/<model_name>`." }),
    prompt: Type.String({
      minLength: 1,
      maxLength: maxTextBytes,
      description: "What to draw: at most 384 KiB in UTF-8, and what the model takes.",
    }),
    aspect_ratio: Type.Optional(
      stringEnum(
        [
          ...["1:1", "1:2", "1:4", "1:8", "2:1", "2:3", "3:2", "3:4", "4:1", "4:3", "4:5", "5:4", "8:1"],
          ...["9:16", "16:9", "9:19.5", "19.5:9", "9:20", "20:9", "9:21", "21:9", "auto"],
        ],
        { description: "Default auto. A provider takes the nearest ratio that it supports." },
      ),
    ),
    background: enumOf(imageBackgrounds, "Default auto. `transparent` needs output_format png or webp."),
    input_references: Type.Optional(
      Type.Array(referenceSchema, {
        maxItems: maxReferences,
        description: "Images to start from: PNG, JPEG or WebP, at most 20 MiB each.",
      }),
    ),
    n: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxImages,
        description: "How many images; default 1. A provider that makes single images refuses more.",
      }),
    ),
    output_compression: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxCompression,
        description: "For webp and jpeg; ignored elsewhere.",
      }),
    ),
    output_format: enumOf(imageFormats, "Default png."),
    quality: enumOf(imageQualities, "Default auto; ignored where the provider has no control."),
    resolution: enumOf(imageResolutions, "A tier of pixels; the pixels are derived per provider."),
    seed: Type.Optional(
      Type.Integer({
        minimum: Number.MIN_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "Same seed and parameters should give the same image; not guaranteed by all providers.",
      }),
    ),
    size: Type.Optional(
      Type.String({
        pattern: "^(512|1K|2K|4K|[1-9][0-9]{0,4}x[1-9][0-9]{0,4})$",
        description:
          "A tier, equal to `resolution`, or `<width>x<height>` in pixels, which `resolution` and `aspect_ratio` must not contradict.",
      }),
    ),
    stream: Type.Optional(
      Type.Boolean({
        description: "Whether previews are wanted as events; ignored by providers without native streaming.",
      }),
    ),
    ...generationFields,
  },
  bodyRules,
);

type ImagesBody = Static<typeof imagesBodySchema>;

/** What `size` must be, in words. */
export const sizeWords =
  "must be 512, 1K, 2K or 4K, or a width and a height in pixels with a small x between, such as 1024x1024";

const check = compileCheck(imagesBodySchema, {
  size: sizeWords,
  "input_references.*.image_url.url": urlWords,
});

/** What data URLs that were taken out of a body came to, by the texts that stand in their place. */
export type BodyImages = ReadonlyMap<string, DataUrlContent>;

/**
 * The request that a body stands for, with the bytes of its data URLs; of those that were taken out of it, `images`
 * holds what they came to. Throws invalid_body and reference_refused with issues, and model_unknown for a name too
 * long to be in any catalogue.
 */
export function toGenerateRequest(body: JsonObject, images: BodyImages = new Map()): GenerateRequest {
  const fields = check(withoutFieldNulls(body));
  checkFreeFields(fields.trace, fields.provider);
  const inputReferences = (fields.input_references ?? []).map(({ image_url: { url } }, index) =>
    toReference(url, `input_references.${index}.image_url.url`, images),
  );
  return create(GenerateRequestSchema, { ...toCommon(fields), ...toLook(fields), inputReferences });
}

/** The fields that every door of this operation has. Throws model_unknown for a name too long to be in any catalogue. */
export function toCommon(
  fields: Pick<
    ImagesBody,
    "model" | "prompt" | "stream" | "seed" | "user" | "session_id" | "provider" | "trace"
  >,
) {
  checkText("prompt", fields.prompt);
  return {
    ...toProtoGeneration(fields),
    prompt: fields.prompt,
    stream: fields.stream ?? false,
    ...(fields.seed === undefined ? {} : { seed: BigInt(fields.seed) }),
  };
}

/** The fields that say what the images should be like. */
function toLook(fields: ImagesBody) {
  const { n, output_compression: outputCompression } = fields;
  return {
    aspectRatio: fields.aspect_ratio ?? "",
    background: imageBackgrounds[fields.background ?? "auto"],
    outputFormat: imageFormats[fields.output_format ?? "png"],
    quality: imageQualities[fields.quality ?? "auto"],
    resolution:
      fields.resolution === undefined
        ? ImageResolution.IMAGE_RESOLUTION_UNSPECIFIED
        : imageResolutions[fields.resolution],
    size: fields.size ?? "",
    ...(n === undefined ? {} : { n }),
    ...(outputCompression === undefined ? {} : { outputCompression }),
  };
}

/**
 * The image that a URL in a body stands for, or what stands for it among `images`. Throws invalid_body and
 * reference_refused with an issue at `path`.
 */
export function toReference(url: string, path: string, images: BodyImages): ReferenceImage {
  const image = images.get(url) ?? (isDataUrl(url) ? parseImageDataUrl(url) : undefined);
  if (image === undefined) {
    if (!isRemoteUrl(url)) throw DomainError.invalid([{ path, message: urlWords }]);
    return create(ReferenceImageSchema, { source: { case: "url", value: url } });
  }
  const { bytes, problem } = image;
  if (bytes === undefined) {
    throw DomainError.invalid([{ path, message: problem }], ErrorReason.REFERENCE_REFUSED);
  }
  return create(ReferenceImageSchema, { source: { case: "data", value: bytes } });
}

function isRemoteUrl(text: string): boolean {
  if (text.length > maxUrlLength) return false;
  return ["http:", "https:"].includes(URL.parse(text)?.protocol ?? "");
}
