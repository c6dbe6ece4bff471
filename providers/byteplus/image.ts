/**
 * Images of BytePlus ModelArk (docs.byteplus.com, "Image generation API", "Streaming response"): each whole image in an event
 * of its own, as soon as it is made. There are no previews.
 *
 * - The headers come with the first image; what is wrong with a request is answered before, as JSON.
 * - Several images are the vendor's "sequential" ones: n is the most it makes, the prompt decides how many it does.
 * - Of an image that fails alone nothing comes; the others are the answer.
 * - The answer is whole with its last event or with the last image asked for, behind which only usage is missing.
 *
 * Setting of an endpoint: `output_format: true` where it takes one; others make jpeg.
 */
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type TokenUsage,
  type UpstreamReport,
} from "../contract.ts";
import type { ProviderHttp, ProviderHttpResponse } from "../provider-http.ts";
import { mediaTypeOf } from "../upstream/audio.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { imageJsonEvents } from "../upstream/events.ts";
import { errorFromEvent, errorFromTransport, isRecord } from "../upstream/failure.ts";
import { imageOutput, noImage } from "../upstream/image-answer.ts";
import { Base64Text, jsonBody } from "../upstream/json-body.ts";
import { type Failures, refuse, send } from "../upstream/send.ts";
import { parseTokenCount } from "../upstream/token-count.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { meanings } from "./error.ts";

/** The largest image in base64. */
const maxEventBytes = 64 * 1024 * 1024;
/** Longest wait for what follows the last image. */
const restTimeoutMs = 1_000;

/** Makes the adapter. */
export function createImageAdapter(http: ProviderHttp): ImageAdapter {
  return {
    async generate(call, context) {
      const { connection, signal, onSent } = context;
      const request = {
        method: "POST" as const,
        url: endpointUrl(connection.baseUrl, "/v3/images/generations"),
        headers: { authorization: `Bearer ${connection.apiKey}`, "content-type": "application/json" },
        body: jsonBody(bodyOf(call)),
        signal,
        onSent,
      };
      const failures = { secrets: [connection.apiKey, call.prompt], meanings };
      const response = await send(http, request, failures);
      if (!mediaTypeOf(response.headers).startsWith("text/event-stream")) throw refuse(response);
      const images = new ImageEvents(call, context, failures);
      return { output: untilLeft(images.read(response), response), report: () => images.report };
    },
  };
}

/** What stays undefined is not sent, and an option can't stand in for it. */
function bodyOf({
  options,
  settings,
  upstreamModel,
  prompt,
  n,
  size,
  format,
  references,
}: ImageCall): object {
  const [first, ...others] = references.map(
    ({ bytes, mediaType }) => new Base64Text(bytes, `data:${mediaType};base64,`),
  );
  return {
    ...options,
    model: upstreamModel,
    prompt,
    image: others.length === 0 ? first : [first, ...others],
    size: size && `${size.width}x${size.height}`,
    sequential_image_generation: n > 1 ? "auto" : "disabled",
    sequential_image_generation_options: n > 1 ? { max_images: n } : undefined,
    output_format: settings.output_format === true ? format : undefined,
    response_format: "b64_json",
    stream: true,
    watermark: false,
  };
}

/** The events of one answer. */
class ImageEvents {
  /** What the last event says. */
  report: UpstreamReport | undefined;
  readonly #call: ImageCall;
  readonly #context: AttemptContext;
  readonly #failures: Failures;
  #made = 0;
  #isWhole = false;
  /** Of an image that failed alone. */
  #failure: ProviderError | undefined;

  constructor(call: ImageCall, context: AttemptContext, failures: Failures) {
    this.#call = call;
    this.#context = context;
    this.#failures = failures;
  }

  async *read(response: ProviderHttpResponse): AsyncGenerator<ImageOutput, void> {
    let timer: NodeJS.Timeout | undefined;
    try {
      for await (const event of imageJsonEvents(response.body, maxEventBytes)) {
        const image = this.#take(event);
        if (image !== undefined) yield image;
        if (this.#isWhole) timer ??= setTimeout(() => response.cancel(), restTimeoutMs);
      }
    } catch (error) {
      if (!this.#isWhole) throw errorFromTransport(error, this.#context.signal);
    } finally {
      clearTimeout(timer);
      response.cancel();
    }
    if (!this.#isWhole) {
      throw new ProviderError("network", "The upstream's stream ended before its last event.");
    }
    if (this.#made === 0) throw this.#failure ?? noImage();
  }

  #take(event: Readonly<Record<string, unknown>>): ImageOutput | undefined {
    const fault = () => errorFromEvent(event, this.#failures.secrets, this.#failures.meanings);
    switch (event.type) {
      case "image_generation.partial_succeeded":
        return this.#imageOf(event.b64_json);
      case "image_generation.partial_failed":
        this.#failure ??= fault();
        return undefined;
      case "image_generation.completed":
        this.#isWhole = true;
        this.report = reportOf(event.usage);
        return undefined;
      default:
        if (isRecord(event.error)) throw fault();
        return undefined;
    }
  }

  #imageOf(bytes: unknown): ImageOutput | undefined {
    if (this.#made === this.#call.n) return undefined;
    if (!(bytes instanceof Uint8Array)) throw noImage();
    const image = imageOutput(bytes);
    this.#made += 1;
    this.#isWhole = this.#made === this.#call.n;
    return image;
  }
}

/** All of its tokens are those of images. */
function reportOf(usage: unknown): UpstreamReport | undefined {
  if (!isRecord(usage)) return undefined;
  const output = parseTokenCount(usage.output_tokens);
  const tokens: TokenUsage = { prompt: 0, completion: output, imageCompletion: output };
  return { tokens };
}
