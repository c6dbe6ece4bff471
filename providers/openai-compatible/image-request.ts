import type { ImageCall, ReferenceImage } from "../contract.ts";
import { type EncodedForm, encodeMultipart, type FormFile } from "../upstream/multipart.ts";

const previewsByDefault = 2;

const extensions: Readonly<Record<ReferenceImage["mediaType"], string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
};

/**
 * The parameters of a call by the upstream's names; what stays undefined is not sent, and allowed options cannot stand in
 * for it. Previews are asked for with single images only: with more the vendor refuses to stream. A user is never named.
 */
export function imageParameters(call: ImageCall): Readonly<Record<string, unknown>> {
  const { size, quality, background, format, compression, options, settings } = call;
  const isStream = call.stream && call.n === 1;
  // Upstreams of this setting know nothing of output formats.
  const responseFormat = typeof settings.response_format === "string" ? settings.response_format : undefined;
  const hasFormat = responseFormat === undefined;
  const isLossy = format === "jpeg" || format === "webp";
  return {
    ...options,
    model: call.upstreamModel,
    prompt: call.prompt,
    n: call.n,
    size: size === undefined ? undefined : `${size.width}x${size.height}`,
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
    mask: undefined,
  };
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
