import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import { type ImageOutput, ProviderError } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { errorFromTransport } from "./failure.ts";
import { ImageJsonReader } from "./image-json.ts";

/** An answer whole, with the bytes of its images in place of their base64 under a key. Throws ProviderError. */
export async function readImageJson(
  response: Pick<ProviderHttpResponse, "body">,
  signal: AbortSignal,
  imageKey?: string,
): Promise<unknown> {
  const reader = new ImageJsonReader(imageKey);
  try {
    // Ends the answer wherever it is left.
    for await (const chunk of response.body) reader.push(chunk);
    return reader.finish();
  } catch (error) {
    throw errorFromTransport(error, signal);
  }
}

/** An image as what its first bytes say that it is. Throws ProviderError where that is none. */
export function imageOutput(bytes: Uint8Array): Extract<ImageOutput, { kind: "image" }> {
  const type = sniffImageType(bytes);
  if (type === undefined) {
    throw new ProviderError("bad_answer", "The upstream sent something that is no image.", { status: 200 });
  }
  return { kind: "image", bytes, mediaType: mediaTypes[type] };
}

/** The failure of an answer without images. */
export function noImage(): ProviderError {
  return new ProviderError("bad_answer", "The upstream's answer holds no image.", { status: 200 });
}
