/**
 * Images of Gemini's models (ai.google.dev, "Image generation"): one an answer, as base64 in one JSON text; no previews.
 * References stand before the prompt. The size is a ratio and, where the endpoint's `settings.image_size` is true, a tier.
 */
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type UpstreamReport,
} from "../contract.ts";
import type { ProviderHttp, ProviderHttpResponse } from "../provider-http.ts";
import { isRecord } from "../upstream/failure.ts";
import { imageOutput, noImage, readImageJson } from "../upstream/image-answer.ts";
import { Base64Text } from "../upstream/json-body.ts";
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
    inlineData: { mimeType: mediaType, data: new Base64Text(bytes) },
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
  const answer = await readImageJson(response, signal, "data");
  if (!isRecord(answer)) {
    throw new ProviderError("bad_answer", "The upstream sent something that is not a JSON object.");
  }
  const { inlineData, finishReason, tokens } = readContent(answer);
  reported.report = { tokens };
  const [image] = inlineData;
  if (!(image?.data instanceof Uint8Array)) throw failureOfEnd(finishReason) ?? noImage();
  yield imageOutput(image.data);
}
