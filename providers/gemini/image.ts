/**
 * Images of Gemini's models (ai.google.dev, "Image generation"): one an answer, as base64 in one JSON text; no previews.
 * References stand before the prompt. The size is a ratio and, where the endpoint's `settings.image_size` is true, a tier.
 */
import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type UpstreamReport,
} from "../contract.ts";
import type { ProviderHttp, ProviderHttpResponse } from "../provider-http.ts";
import { errorFromTransport, isRecord } from "../upstream/failure.ts";
import { ImageJsonReader } from "../upstream/image-json.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { failureOfEnd, readContent, requestContent } from "./content.ts";

/** An image of the largest tier, and the thoughts that come before it, in base64. */
const maxResponseBytes = 128 * 1024 * 1024;

/** Makes the adapter. */
export function createImageAdapter(http: ProviderHttp): ImageAdapter {
  return {
    async generate(call, context) {
      const { upstreamModel: model, prompt: text } = call;
      const request = {
        model,
        method: "generateContent",
        text,
        body: bodyOf(call),
        maxResponseBytes,
      } as const;
      const response = await requestContent(http, request, context);
      const reported: { report?: UpstreamReport } = {};
      return {
        output: untilLeft(images(response, context, reported), response),
        report: () => reported.report,
      };
    },
  };
}

function bodyOf({
  prompt,
  references,
  shape,
  options,
  settings,
}: ImageCall): Readonly<Record<string, unknown>> {
  const images = references.map(({ bytes, mediaType }) => ({
    inlineData: { mimeType: mediaType, data: Buffer.from(bytes).toString("base64") },
  }));
  const imageConfig = shape && {
    aspectRatio: shape.aspectRatio,
    ...(settings.image_size === true && { imageSize: shape.resolution }),
  };
  return {
    contents: [{ role: "user", parts: [...images, { text: prompt }] }],
    generationConfig: { ...options, responseModalities: ["IMAGE"], imageConfig },
  };
}

async function* images(
  response: ProviderHttpResponse,
  { signal }: AttemptContext,
  reported: { report?: UpstreamReport },
): AsyncGenerator<ImageOutput, void> {
  const { inlineData, finishReason, tokens } = readContent(await readAnswer(response, signal));
  reported.report = { tokens };
  const [image] = inlineData;
  if (image === undefined) {
    throw (
      failureOfEnd(finishReason) ??
      new ProviderError("bad_answer", "The upstream's answer holds no image.", { status: 200 })
    );
  }
  yield toImage(image.data);
}

async function readAnswer(
  response: ProviderHttpResponse,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const reader = new ImageJsonReader("data");
  try {
    // Ends the answer wherever it is left.
    for await (const chunk of response.body) reader.push(chunk);
    const answer = reader.finish();
    if (isRecord(answer)) return answer;
  } catch (error) {
    throw errorFromTransport(error, signal);
  }
  throw new ProviderError("bad_answer", "The upstream sent something that is not a JSON object.");
}

function toImage(bytes: unknown): ImageOutput {
  const type = bytes instanceof Uint8Array ? sniffImageType(bytes) : undefined;
  if (!(bytes instanceof Uint8Array) || type === undefined) {
    throw new ProviderError("bad_answer", "The upstream sent something that is no image.", { status: 200 });
  }
  return { kind: "image", bytes, mediaType: mediaTypes[type] };
}
