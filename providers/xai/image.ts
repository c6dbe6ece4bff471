/**
 * xAI's images: one JSON request, one JSON answer with the images as base64 or, should it rather give them, by address.
 * docs.x.ai, "Image generation", "Image editing", "Cost tracking".
 *
 * - It knows no pixels but ratios and tiers: `shape` of the call. Setting of an endpoint: `aspect_ratios`, the vendor's name of
 *   the ratio by `<width>x<height>`, for sizes whose true ratio is nearer to another one's.
 * - What was made but kept back (`respect_moderation: false`) is left out; where that is all, it is a refusal by policy.
 * - `usage.cost_in_usd_ticks` is the cost of the request: ten thousand million ticks are a dollar.
 */
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  type ProviderDependencies,
  ProviderError,
} from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { isRecord } from "../upstream/failure.ts";
import { imageOutput, noImage, readImageJson } from "../upstream/image-answer.ts";
import { Base64Text, jsonBody } from "../upstream/json-body.ts";
import { refuse, send } from "../upstream/send.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { phrases } from "./error.ts";

const maxResponseBytes = 96 * 1024 * 1024;
const maxImageBytes = 32 * 1024 * 1024;
const ticksPerUsd = 1e10;

type Item = Readonly<Record<string, unknown>>;

/** Makes the adapter. */
export function createImageAdapter({ http, fetchResult }: ProviderDependencies): ImageAdapter {
  return {
    async generate(call, context) {
      const { connection, onSent } = context;
      const left = new AbortController();
      const signal = AbortSignal.any([context.signal, left.signal]);
      const path = call.references.length > 0 ? "/v1/images/edits" : "/v1/images/generations";
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, path),
        headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
        body: jsonBody(bodyOf(call)),
        signal,
        onSent,
        maxResponseBytes,
      };
      const response = await send(http, request, { secrets: [connection.apiKey, call.prompt], phrases });
      if (!isJson(response)) throw refuse(response);
      let costUsd: number | undefined;
      const fetch = (url: string) => fetchResult({ url, signal, maxBytes: maxImageBytes });
      const output = imagesOf(response, { ...context, signal }, call.n, fetch, (usd) => {
        costUsd = usd;
      });
      return {
        output: untilLeft(output, { cancel: () => left.abort() }),
        report: () => (costUsd === undefined ? undefined : { costUsd }),
      };
    },
  };
}

function isJson({ headers }: ProviderHttpResponse): boolean {
  return /^(application\/json\b|$)/i.test(headers["content-type"] ?? "");
}

async function* imagesOf(
  response: ProviderHttpResponse,
  { signal }: AttemptContext,
  n: number,
  fetch: (url: string) => Promise<Uint8Array>,
  onCost: (usd: number) => void,
): AsyncGenerator<ImageOutput, void> {
  const answer = await readImageJson(response, signal);
  const { data, usage } = isRecord(answer) ? answer : {};
  if (isRecord(usage) && typeof usage.cost_in_usd_ticks === "number") {
    onCost(usage.cost_in_usd_ticks / ticksPerUsd);
  }
  const made: Item[] = Array.isArray(data) ? data.filter(isRecord) : [];
  const images = made.filter(({ respect_moderation: isFine }) => isFine !== false).slice(0, n);
  if (images.length === 0 && made.length > 0) {
    throw new ProviderError("content_policy", "The upstream keeps what it made back by its policy.");
  }
  let count = 0;
  // What has been handed on is not held here while the consumer works on it.
  for (let item = images.shift(); item !== undefined; item = images.shift()) {
    const { b64_json: bytes, url } = item;
    if (bytes instanceof Uint8Array) yield imageOutput(bytes);
    else if (typeof url === "string" && url !== "") yield imageOutput(await fetch(url));
    else continue;
    count += 1;
  }
  if (count === 0) throw noImage();
}

/** What stays undefined is not sent, and an option can't stand in for it. */
function bodyOf(call: ImageCall): object {
  const { options, size, shape, quality, references, settings } = call;
  const [first, ...others] = references.map(({ bytes, mediaType }) => ({
    type: "image_url",
    url: new Base64Text(bytes, `data:${mediaType};base64,`),
  }));
  const ratios = isRecord(settings.aspect_ratios) ? settings.aspect_ratios : {};
  return {
    ...options,
    model: call.upstreamModel,
    prompt: call.prompt,
    n: call.n,
    response_format: "b64_json",
    aspect_ratio: size && (ratios[`${size.width}x${size.height}`] ?? shape?.aspectRatio),
    resolution: size && shape?.resolution.toLowerCase(),
    quality: quality === "auto" ? undefined : quality,
    image: others.length === 0 ? first : undefined,
    images: others.length === 0 ? undefined : [first, ...others],
    mask: undefined,
    size: undefined,
    user: undefined,
  };
}
