/**
 * OpenAI's "create image" and "create image edit" as many upstreams speak them. What the answer may look like:
 * image-output.ts.
 *
 * With references it is an edit. The shape of edits says how they go: `multipart`, a form whose parts are the references'
 * own bytes; or JSON with data URLs in `image`, in `images` as `image_url`, or in `input_references`.
 *
 * Settings of an endpoint: `response_format`, sent as it stands in place of the output format, for upstreams that know only
 * the older parameters; `size_as`, whether sizes are told in pixels, the default, as a ratio and a tier, or not at all;
 * `body`, fixed fields under those of a request; `max_response_mib`, the longest answer, 96 by default.
 */
import { randomUUID } from "node:crypto";
import type { ImageAdapter, ImageCall, UpstreamReport } from "../contract.ts";
import type { FetchResult, ProviderHttpRequest } from "../provider-http.ts";
import { jsonBody } from "../upstream/json-body.ts";
import { send } from "../upstream/send.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { addressOf, type DialectOptions, headersOf, settingsOf } from "./dialect.ts";
import { readImages } from "./image-output.ts";
import { type EditShape, encodeImageForm, imageParameters, referenceParameters } from "./image-request.ts";

/** What differs between the upstreams that speak this dialect. */
export interface ImageDialectOptions extends DialectOptions {
  /** Paths with their version, as they follow the base URL: "/v1/images/generations", "/v1/images/edits". */
  readonly generationsPath: string;
  readonly editsPath: string;
  /** How references go; `multipart` unless given. */
  readonly edits?: EditShape | undefined;
  /** What an answer in one JSON text says that it cost, US dollars, where that is not `usage.cost`. */
  readonly costUsdOf?: (answer: Readonly<Record<string, unknown>>) => number | undefined;
  /** For upstreams that answer addresses; without it such an answer holds no image. */
  readonly fetchResult?: FetchResult | undefined;
  /** Makes what stands between the parts of a form: letters and digits that occur in none. */
  readonly createBoundary?: () => string;
}

const mebibyte = 1024 * 1024;
const maxResponseMib = 96;

/** Makes the adapter. */
export function createImageAdapter(options: ImageDialectOptions): ImageAdapter {
  return {
    async generate(asked, context) {
      const call = { ...asked, settings: settingsOf(options, asked.settings) };
      const isEdit = call.references.length > 0;
      const { connection, onSent } = context;
      // Whoever leaves ends the request, and the fetch of an image as well.
      const left = new AbortController();
      const signal = AbortSignal.any([context.signal, left.signal]);
      const path = isEdit ? options.editsPath : options.generationsPath;
      const maxResponseBytes = maxResponseBytesOf(call);
      const body = encodeBody(call, isEdit, options);
      const request: ProviderHttpRequest = {
        method: "POST",
        url: addressOf(options, connection.baseUrl, path, call.upstreamModel),
        headers: { ...headersOf(options, connection.apiKey), "content-type": body.contentType },
        body: body.body,
        signal,
        onSent,
        maxResponseBytes,
      };
      const secrets = [connection.apiKey, call.prompt];
      const { http, nowMs, fetchResult } = options;
      const response = await send(http, request, { secrets, nowMs });
      let report: UpstreamReport | undefined;
      const output = readImages(response, {
        n: call.n,
        secrets,
        signal,
        onReport: (reported, answer) => {
          const costUsd = (answer && options.costUsdOf?.(answer)) ?? reported.costUsd;
          report = { ...reported, costUsd };
        },
        fetch: fetchResult && ((url) => fetchResult({ url, signal, maxBytes: maxResponseBytes })),
      });
      return { output: untilLeft(output, { cancel: () => left.abort() }), report: () => report };
    },
  };
}

function encodeBody(
  call: ImageCall,
  isEdit: boolean,
  { edits = "multipart", createBoundary = randomBoundary }: ImageDialectOptions,
) {
  if (isEdit && edits === "multipart") return encodeImageForm(call, createBoundary());
  const references = isEdit && edits !== "multipart" ? referenceParameters(call, edits) : {};
  const body = jsonBody({ ...imageParameters(call), ...references });
  return { contentType: "application/json", body };
}

function randomBoundary(): string {
  return randomUUID().replaceAll("-", "");
}

function maxResponseBytesOf({ settings }: ImageCall): number {
  const { max_response_mib: mib } = settings;
  return (typeof mib === "number" && mib > 0 ? mib : maxResponseMib) * mebibyte;
}
