import { create } from "@bufbuild/protobuf";
import Type, { type Static } from "typebox";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  ImageQuality,
  type ReferenceImage,
  ReferenceImageSchema,
} from "../../../gen/media/image/v1/image_pb.ts";
import {
  imageBackgrounds,
  imageFormats,
  imageQualities,
  maxReferences,
} from "../../../lib/limits/image-limits.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { FormBody, FormFile } from "../../body/form-body.ts";
import {
  checkFreeFields,
  checkText,
  generationFields,
  labelPattern,
  withoutFieldNulls,
} from "../../body/generation-fields.ts";
import { bodyRules, compileCheck, isObject, type JsonObject } from "../../body/json-body.ts";
import type { WireNames } from "../../http/service-call.ts";
import { stringEnum } from "../../schema/field-schemas.ts";
import {
  type BodyImages,
  enumOf,
  imagesBodySchema,
  imageUrlSchema,
  sizeWords,
  toCommon,
  toReference,
} from "../body.ts";
import { fromFormFields } from "./form-fields.ts";

/** What a body of OpenAI's image operations stands for. */
export interface ImageGenerationsRequest {
  readonly request: GenerateRequest;
  /** What the body calls the fields of the request. */
  readonly wireNames: WireNames;
}

/** The vendor's words of several generations of models. */
const protoQualities = {
  ...imageQualities,
  xhigh: ImageQuality.HIGH,
  max: ImageQuality.HIGH,
  standard: ImageQuality.MEDIUM,
  hd: ImageQuality.HIGH,
} as const;

const { model, prompt, n, output_compression, seed } = imagesBodySchema.properties;

const lookFields = {
  model,
  prompt,
  background: enumOf(imageBackgrounds, "Default auto. `transparent` needs output_format png or webp."),
  moderation: Type.Optional(
    stringEnum(["auto", "low"], { description: "Ignored where the provider does not take it." }),
  ),
  n,
  output_compression,
  output_format: enumOf(imageFormats, "Default png."),
  partial_images: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 3,
      description: "With `stream`: how many previews are wanted; default 0. Fewer may come.",
    }),
  ),
  quality: enumOf(
    protoQualities,
    "Default auto. `standard` is medium; `hd`, `xhigh` and `max` are high. Ignored where the provider has no control.",
  ),
  response_format: Type.Optional(
    stringEnum(["b64_json"], { description: "Images are never kept, so there is no `url` of them." }),
  ),
  safety_identifier: Type.Optional(
    Type.String({
      maxLength: 256,
      pattern: labelPattern,
      description: "Takes the place of `user`.",
    }),
  ),
  seed,
  size: Type.Optional(
    Type.String({
      pattern: "^(auto|512|1K|2K|4K|[1-9][0-9]{0,4}x[1-9][0-9]{0,4})$",
      description: "`<width>x<height>` in pixels, a tier, or `auto`, the default: the provider decides.",
    }),
  ),
  stream: Type.Optional(Type.Boolean({ description: "Whether the answer is wanted as events." })),
  ...generationFields,
};
const editFields = {
  ...lookFields,
  input_fidelity: Type.Optional(
    stringEnum(["low", "high"], { description: "Ignored where the provider does not take it." }),
  ),
};

const maskDescription =
  "A PNG of the first image's size whose transparent parts are drawn anew. Models without masks refuse it.";
const imageUrl = Type.Object({ image_url: imageUrlSchema });

/** The body of POST /images/generations. Unknown fields are ignored; null counts as absent. */
export const generationsBodySchema = Type.Object(lookFields, bodyRules);

/** The members of a body of POST /images/edits that hold images. */
export const editsImagesMembers: readonly string[] = ["images", "image", "mask"];

/** The body of POST /images/edits as JSON. */
export const editsBodySchema = Type.Object(
  {
    ...editFields,
    images: Type.Array(imageUrl, {
      minItems: 1,
      maxItems: maxReferences,
      description: "Images to start from: PNG, JPEG or WebP, at most 20 MiB each.",
    }),
    mask: Type.Optional(Type.Object(imageUrl.properties, { description: maskDescription })),
  },
  bodyRules,
);

const file = (description: string) =>
  Type.String({ format: "binary", contentMediaType: "image/*", description });

/** The body of POST /images/edits as a form. */
export const editsFormSchema = Type.Object({
  ...editFields,
  image: Type.Array(file("PNG, JPEG or WebP, whatever its name and type say; at most 20 MiB."), {
    minItems: 1,
    maxItems: maxReferences,
    description: "Images to start from; `image[]` is the same.",
  }),
  mask: Type.Optional(file(maskDescription)),
});

type EditFields = Static<ReturnType<typeof editObject>>;

const editObject = () => Type.Object(editFields);
const patternWords = { size: `${sizeWords}, or auto` };
const checkGeneration = compileCheck(generationsBodySchema, patternWords);
const checkEdit = compileCheck(editObject(), patternWords);

/** Throws as the body of POST /images does. */
export function toGenerationsRequest(body: JsonObject): ImageGenerationsRequest {
  const fields = checkGeneration(withoutFieldNulls(body));
  return { request: toRequest(fields, [], undefined), wireNames: {} };
}

/** Throws as the body of POST /images does. */
export function toEditsRequest(body: JsonObject, taken: BodyImages = new Map()): ImageGenerationsRequest {
  const given = withoutFieldNulls(body);
  const fields = checkEdit(given);
  const name = given.images === undefined && given.image !== undefined ? "image" : "images";
  const listed = given[name] ?? [];
  const images = Array.isArray(listed) ? listed : [listed];
  checkCount(name, images.length);
  const references = images.map((image, index) => toReferenceOf(image, `${name}.${index}`, taken));
  const mask = given.mask === undefined ? undefined : toReferenceOf(given.mask, "mask", taken);
  return { request: toRequest(fields, references, mask), wireNames: wireNamesOf(name) };
}

/** The same of a form, whose files go on as they are. */
export function toEditsRequestOfForm({ fields: texts, files }: FormBody): ImageGenerationsRequest {
  const fields = checkEdit(fromFormFields(texts, editFields));
  const images = files.filter(({ name }) => /^image(\[\d*\])?$/.test(name));
  const masks = files.filter(({ name }) => name === "mask");
  checkCount("image", images.length);
  if (masks.length > 1) throw DomainError.invalid([{ path: "mask", message: "must be given once" }]);
  const references = images.map((image, index) => toReferenceOfFile(image, `image.${index}`));
  const mask = masks.map((file) => toReferenceOfFile(file, "mask"))[0];
  return { request: toRequest(fields, references, mask), wireNames: wireNamesOf("image") };
}

function checkCount(path: string, count: number): void {
  if (count === 0) throw DomainError.invalid([{ path, message: "is required" }]);
  if (count <= maxReferences) return;
  throw DomainError.invalid([{ path, message: `must be at most ${maxReferences} images` }]);
}

/** What clients call the references of a request. */
function wireNamesOf(name: string): WireNames {
  return { input_references: name };
}

/** An image of a JSON body: its URL, or an object that holds it. */
function toReferenceOf(image: unknown, path: string, taken: BodyImages): ReferenceImage {
  const held = isObject(image) ? (image.image_url ?? image.url) : image;
  const url = isObject(held) ? held.url : held;
  if (typeof url === "string" && url !== "") return toReference(url, path, taken);
  const byId = isObject(image) && image.file_id !== undefined;
  const message = byId
    ? "names a file, and files are not kept here: send its image_url"
    : "must be an object whose image_url is a URL";
  throw DomainError.invalid([{ path, message }]);
}

function toReferenceOfFile({ bytes }: FormFile, path: string): ReferenceImage {
  if (bytes.length === 0) throw DomainError.invalid([{ path, message: "is empty" }]);
  return create(ReferenceImageSchema, { source: { case: "data", value: bytes } });
}

function toRequest(
  fields: EditFields,
  inputReferences: ReferenceImage[],
  mask: ReferenceImage | undefined,
): GenerateRequest {
  checkFreeFields(fields.trace, fields.provider);
  checkText("prompt", fields.prompt);
  const { output_compression: outputCompression, safety_identifier: identifier = "" } = fields;
  return create(GenerateRequestSchema, {
    ...toCommon(identifier === "" ? fields : { ...fields, user: identifier }),
    background: imageBackgrounds[fields.background ?? "auto"],
    outputFormat: imageFormats[fields.output_format ?? "png"],
    quality: protoQualities[fields.quality ?? "auto"],
    size: fields.size === undefined || fields.size === "auto" ? "" : fields.size,
    partialImages: fields.partial_images ?? 0,
    moderation: fields.moderation ?? "",
    inputFidelity: fields.input_fidelity ?? "",
    inputReferences,
    ...(mask === undefined ? {} : { mask }),
    ...(fields.n === undefined ? {} : { n: fields.n }),
    ...(outputCompression === undefined ? {} : { outputCompression }),
  });
}
