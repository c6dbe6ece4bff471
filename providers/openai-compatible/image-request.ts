import type { ImageCall, ReferenceImage } from "../contract.ts";
import { Base64Text } from "../upstream/json-body.ts";
import { type EncodedForm, encodeMultipart, type FormFile } from "../upstream/multipart.ts";
import { overFixedFields } from "./dialect.ts";

const previewsByDefault = 2;

const extensions: Readonly<Record<ReferenceImage["mediaType"], string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
};

/** How references go to an upstream: as a form, or as data URLs in one of three members of a JSON body. */
export type EditShape = "multipart" | "image" | "image_url" | "input_references";

/**
 * The parameters of a call by the upstream's names, over the endpoint's fixed fields; what stays undefined is not sent, and
 * allowed options cannot stand in for it. Previews are asked for with single images only: with more the vendor refuses to stream. A user is never named.
 */
export function imageParameters(call: ImageCall): Readonly<Record<string, unknown>> {
  const { quality, background, format, compression, options, settings } = call;
  const isStream = call.stream && call.n === 1;
  // Upstreams of this setting know nothing of output formats.
  const responseFormat = typeof settings.response_format === "string" ? settings.response_format : undefined;
  const hasFormat = responseFormat === undefined;
  const isLossy = format === "jpeg" || format === "webp";
  return overFixedFields(settings, {
    ...options,
    model: call.upstreamModel,
    prompt: call.prompt,
    n: call.n,
    ...sizeParameters(call),
    quality: quality === "auto" ? undefined : quality,
    background: background === "auto" ? undefined : background,
    output_format: hasFormat ? format : undefined,
    output_compression: hasFormat && isLossy ? compression : undefined,
    seed: call.seed,
    stream: isStream ? true : undefined,
    partial_images: isStream
      ? (call.partialImages ?? options.partial_images ?? previewsByDefault)
      : undefined,
    response_format: responseFormat,
    user: undefined,
    image: undefined,
    "image[]": undefined,
    images: undefined,
    input_references: undefined,
    mask: undefined,
  });
}

function sizeParameters({ size, shape, settings }: ImageCall): Readonly<Record<string, unknown>> {
  const pixels = size === undefined ? undefined : `${size.width}x${size.height}`;
  switch (settings.size_as) {
    case "none":
      return { size: undefined };
    case "ratio":
      return { size: undefined, aspect_ratio: shape?.aspectRatio, resolution: shape?.resolution };
    default:
      return { size: pixels };
  }
}

/** The references of a call, and its mask where the shape has one, as data URLs. */
export function referenceParameters(
  { references, mask }: ImageCall,
  shape: Exclude<EditShape, "multipart">,
): Readonly<Record<string, unknown>> {
  const urls = references.map(dataUrlOf);
  switch (shape) {
    case "image":
      return { image: urls.length === 1 ? urls[0] : urls };
    case "image_url":
      return {
        images: urls.map((url) => ({ image_url: url })),
        ...(mask !== undefined && { mask: { image_url: dataUrlOf(mask) } }),
      };
    case "input_references":
      return { input_references: urls.map((url) => ({ type: "image_url", image_url: { url } })) };
  }
}

function dataUrlOf({ bytes, mediaType }: ReferenceImage): Base64Text {
  return new Base64Text(bytes, `data:${mediaType};base64,`);
}

/** The form of a call with references, their mask last. */
export function encodeImageForm(call: ImageCall, boundary: string): EncodedForm {
  const fields = Object.entries(imageParameters(call)).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return text === undefined ? [] : [[name, text] as const];
  });
  const files = call.references.map((image, index) => toFile("image[]", `image-${index + 1}`, image));
  if (call.mask !== undefined) files.push(toFile("mask", "mask", call.mask));
  return encodeMultipart(fields, files, boundary);
}

function toFile(name: string, title: string, { bytes, mediaType }: ReferenceImage): FormFile {
  return { name, fileName: `${title}.${extensions[mediaType]}`, mediaType, bytes };
}
