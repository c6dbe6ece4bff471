/**
 * OpenAI's "create image" and "create image edit" as many upstreams speak them. The answer's content type decides its shape:
 * one JSON text, or events with previews before each image.
 *
 * - With references it is an edit, sent as a form whose parts are the references' own bytes.
 * - Base64 is decoded once, from the chunks that came in to one buffer of the image's size.
 * - A JSON text yields nothing before all of it has come and holds; events yield as they come, and the answer is whole
 *   with the last image asked for or, after one at least, where the body ends.
 * - What an image is says the image: its first bytes, not the answer around it.
 *
 * Settings of an endpoint: `response_format`, sent as it stands in place of the output format, for upstreams that know only
 * the older parameters; `max_response_mib`, the longest answer, 96 by default.
 */
import { randomUUID } from "node:crypto";
import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import { drainBody } from "../../lib/http/read-body.ts";
import { type SplitEvent, splitServerSentEvents } from "../../lib/http/sse-decode.ts";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type TokenUsage,
} from "../contract.ts";
import type { ProviderHttp, ProviderHttpRequest, ProviderHttpResponse } from "../provider-http.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { errorFromEvent, errorFromTransport, isRecord } from "../upstream/failure.ts";
import { ImageJsonReader, parseImageJson } from "../upstream/image-json.ts";
import { refuse, send } from "../upstream/send.ts";
import { parseTokenCount } from "../upstream/token-count.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { encodeImageForm, imageParameters } from "./image-request.ts";

/** What differs between the upstreams that speak this dialect. */
export interface ImageDialectOptions {
  readonly http: ProviderHttp;
  /** Paths with their version, as they follow the base URL: "/v1/images/generations", "/v1/images/edits". */
  readonly generationsPath: string;
  readonly editsPath: string;
  /** What an answer in one JSON text says that it cost, US dollars; without it none says so. */
  readonly costUsdOf?: (answer: Readonly<Record<string, unknown>>) => number | undefined;
  /** Wall clock, for a Retry-After that names a date. */
  readonly nowMs?: () => number;
  /** Makes what stands between the parts of a form: letters and digits that occur in none. */
  readonly createBoundary?: () => string;
}

const mebibyte = 1024 * 1024;
const maxResponseMib = 96;
const maxEventBytes = 40 * mebibyte;
const drainTimeoutMs = 1_000;

/** Makes the adapter. */
export function createImageAdapter(options: ImageDialectOptions): ImageAdapter {
  return {
    async generate(call, context) {
      const isEdit = call.references.length > 0;
      const { connection, signal, onSent } = context;
      const request: ProviderHttpRequest = {
        method: "POST",
        url: endpointUrl(connection.baseUrl, isEdit ? options.editsPath : options.generationsPath),
        ...encodeBody(call, isEdit, connection.apiKey, options.createBoundary ?? randomBoundary),
        signal,
        onSent,
        maxResponseBytes: maxResponseBytesOf(call),
      };
      const { http, nowMs } = options;
      const response = await send(http, request, { secrets: secretsOf(call, context), nowMs });
      let usage: TokenUsage | undefined;
      let costUsd: number | undefined;
      const onUsage: OnUsage = (reported, answer) => {
        usage = parseUsage(reported);
        costUsd = answer && options.costUsdOf?.(answer);
      };
      const read = readerOf(response);
      const output = read(call, context, response, onUsage);
      return { output: untilLeft(output, response), report: () => ({ tokens: usage, costUsd }) };
    },
  };
}

function encodeBody(
  call: ImageCall,
  isEdit: boolean,
  apiKey: string,
  createBoundary: () => string,
): Pick<ProviderHttpRequest, "headers" | "body"> {
  const authorization = `Bearer ${apiKey}`;
  if (!isEdit) {
    const headers = { authorization, "content-type": "application/json" };
    return { headers, body: JSON.stringify(imageParameters(call)) };
  }
  const { contentType, body } = encodeImageForm(call, createBoundary());
  return { headers: { authorization, "content-type": contentType }, body };
}

function randomBoundary(): string {
  return randomUUID().replaceAll("-", "");
}

function maxResponseBytesOf({ settings }: ImageCall): number {
  const { max_response_mib: mib } = settings;
  return (typeof mib === "number" && mib > 0 ? mib : maxResponseMib) * mebibyte;
}

type OnUsage = (usage: unknown, answer?: Readonly<Record<string, unknown>>) => void;

type OutputReader = (
  call: ImageCall,
  context: AttemptContext,
  response: ProviderHttpResponse,
  onUsage: OnUsage,
) => AsyncGenerator<ImageOutput, void>;

function readerOf(response: ProviderHttpResponse): OutputReader {
  const mediaType = response.headers["content-type"]?.toLowerCase() ?? "";
  if (mediaType.startsWith("text/event-stream")) return imagesFromEvents;
  if (mediaType === "" || /^application\/(json|[\w.-]+\+json)\b/.test(mediaType)) return imagesFromJson;
  throw refuse(response);
}

const imagesFromJson: OutputReader = async function* (call, context, response, onUsage) {
  const images = imagesOf(await readJson(context, response), call, context, onUsage);
  // What has been handed on is not held here while the consumer works on it.
  for (let image = images.shift(); image !== undefined; image = images.shift()) yield image;
};

async function readJson({ signal }: AttemptContext, response: ProviderHttpResponse): Promise<unknown> {
  const reader = new ImageJsonReader();
  try {
    // Ends the answer wherever it is left.
    for await (const chunk of response.body) reader.push(chunk);
    return reader.finish();
  } catch (error) {
    throw errorFromTransport(error, signal);
  }
}

/** All images of an answer; those that were left out of it are not missed, as long as there is one. */
function imagesOf(
  answer: unknown,
  call: ImageCall,
  context: AttemptContext,
  onUsage: OnUsage,
): ImageOutput[] {
  if (isRecord(answer) && isRecord(answer.error)) throw errorFromEvent(answer, secretsOf(call, context));
  const items = isRecord(answer) && Array.isArray(answer.data) ? answer.data.filter(isRecord) : [];
  const images = items.filter(({ b64_json }) => b64_json instanceof Uint8Array).map(toImage);
  if (images.length === 0) throw emptyAnswer();
  if (isRecord(answer)) onUsage(answer.usage, answer);
  return images.slice(0, call.n);
}

const imagesFromEvents: OutputReader = async function* (call, context, response, onUsage) {
  const events = splitServerSentEvents(response.body, maxEventBytes, parseEvent);
  let previews = 0;
  let images = 0;
  try {
    for (;;) {
      const next = await events.next();
      if (next.done) break;
      const event = next.value;
      if (event.type === "error" || isRecord(event.error))
        throw errorFromEvent(event, secretsOf(call, context));
      const [, phase] =
        /^image_(?:generation|edit)\.(partial_image|completed)$/.exec(String(event.type)) ?? [];
      if (phase === "partial_image") {
        const { bytes, mediaType } = toImage(event);
        yield { kind: "partial", index: previews, bytes, mediaType };
        previews += 1;
      } else if (phase === "completed") {
        const image = toImage(event);
        onUsage(event.usage);
        images += 1;
        yield image;
        if (images < call.n) continue;
        await drainBody(events, () => response.cancel(), drainTimeoutMs);
        return;
      }
    }
  } catch (error) {
    throw errorFromTransport(error, context.signal);
  } finally {
    response.cancel();
  }
  if (images === 0) {
    throw new ProviderError("network", "The upstream's stream ended before its last event.");
  }
};

/** The event's object, its type in it; empty for the bare word that look-alikes close with. */
function parseEvent({ type, data }: SplitEvent): Readonly<Record<string, unknown>> {
  const length = data.reduce((sum, piece) => sum + piece.length, 0);
  if (length < 16 && Buffer.concat(data).toString("latin1").trim() === "[DONE]") return {};
  const event = parseImageJson(data);
  if (isRecord(event)) return { type, ...event };
  throw new ProviderError("bad_answer", "The upstream sent an event that is not a JSON object.");
}

function toImage({ b64_json: bytes }: Readonly<Record<string, unknown>>): ImageOutput & { kind: "image" } {
  if (!(bytes instanceof Uint8Array)) throw emptyAnswer();
  const type = sniffImageType(bytes);
  if (type === undefined) {
    throw new ProviderError("bad_answer", "The upstream sent something that is no image.", { status: 200 });
  }
  return { kind: "image", bytes, mediaType: mediaTypes[type] };
}

/** Output that is not itemized is the image: these models speak in images. */
function parseUsage(usage: unknown): TokenUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = isRecord(usage.input_tokens_details) ? usage.input_tokens_details : {};
  const output = isRecord(usage.output_tokens_details) ? usage.output_tokens_details : {};
  return {
    prompt: parseTokenCount(usage.input_tokens),
    completion: parseTokenCount(usage.output_tokens),
    imagePrompt: parseTokenCount(input.image_tokens),
    imageCompletion: parseTokenCount(output.image_tokens ?? usage.output_tokens),
    cachedPrompt: parseTokenCount(input.cached_tokens),
  };
}

function secretsOf({ prompt }: ImageCall, { connection }: AttemptContext): readonly string[] {
  return [connection.apiKey, prompt];
}

function emptyAnswer(): ProviderError {
  return new ProviderError("bad_answer", "The upstream's answer holds no image.", { status: 200 });
}
