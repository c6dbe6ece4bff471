/**
 * What an upstream of this dialect answers with. The content type decides the answer's shape: one JSON text, or events with
 * previews before each image.
 *
 * - Base64 is decoded once, from the chunks that came in to one buffer of the image's size. An image that lies at an address
 *   is fetched when its turn comes; one in a data URL is decoded from it.
 * - A JSON text yields nothing before all of it has come and holds; events yield as they come, and the answer is whole
 *   with the last image asked for or, after one at least, where the body ends.
 * - What an image is says the image: its first bytes, not the answer around it.
 */
import { isDataUrl, parseImageDataUrl } from "../../lib/http/data-url.ts";
import { drainBody } from "../../lib/http/read-body.ts";
import { type ImageOutput, ProviderError, type UpstreamReport } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { imageJsonEvents } from "../upstream/events.ts";
import { errorFromEvent, errorFromTransport, isRecord, type Secrets } from "../upstream/failure.ts";
import { imageOutput, noImage, readImageJson } from "../upstream/image-answer.ts";
import { refuse } from "../upstream/send.ts";
import { imageUsageOf } from "./reported-usage.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What is known of an answer before it comes, and who hears of what it reports. */
export interface ExpectedImages {
  /** How many were asked for. */
  readonly n: number;
  readonly secrets: Secrets;
  readonly signal: AbortSignal;
  onReport(report: UpstreamReport, answer?: Fields): void;
  /** Gets an image from an address; undefined where there should be none. Throws ProviderError. */
  readonly fetch: ((url: string) => Promise<Uint8Array>) | undefined;
}

type Image = ImageOutput & { readonly kind: "image" };

const maxEventBytes = 40 * 1024 * 1024;
const drainTimeoutMs = 1_000;

/** The images of an answer as they come. Throws ProviderError, at once for an answer that holds none by its headers. */
export function readImages(
  response: ProviderHttpResponse,
  expected: ExpectedImages,
): AsyncGenerator<ImageOutput, void> {
  const mediaType = response.headers["content-type"]?.toLowerCase() ?? "";
  if (mediaType.startsWith("text/event-stream")) return imagesFromEvents(response, expected);
  if (mediaType === "" || /^application\/(json|[\w.-]+\+json)\b/.test(mediaType))
    return imagesFromJson(response, expected);
  throw refuse(response);
}

async function* imagesFromJson(
  response: ProviderHttpResponse,
  expected: ExpectedImages,
): AsyncGenerator<ImageOutput, void> {
  const items = itemsOf(await readImageJson(response, expected.signal), expected);
  // What has been handed on is not held here while the consumer works on it.
  for (let item = items.shift(); item !== undefined; item = items.shift()) {
    yield await toImage(item, expected);
  }
}

/** All images of an answer; those that were left out of it are not missed, as long as there is one. */
function itemsOf(answer: unknown, { n, secrets, onReport, fetch }: ExpectedImages): Fields[] {
  const body = isRecord(answer) ? answer : {};
  if (isRecord(body.error) || typeof body.error === "string") throw errorFromEvent(body, secrets);
  const data = Array.isArray(body.data) ? body.data.filter(isRecord) : [];
  const items = data.filter(
    ({ b64_json, url }) => b64_json instanceof Uint8Array || (fetch !== undefined && isAddress(url)),
  );
  if (items.length === 0) throw noImage();
  onReport(imageUsageOf(body.usage), body);
  return items.slice(0, n);
}

function isAddress(url: unknown): url is string {
  return typeof url === "string" && url !== "";
}

async function* imagesFromEvents(
  response: ProviderHttpResponse,
  expected: ExpectedImages,
): AsyncGenerator<ImageOutput, void> {
  const events = imageJsonEvents(response.body, maxEventBytes);
  let previews = 0;
  let images = 0;
  try {
    for (;;) {
      const next = await events.next();
      if (next.done) break;
      const event = next.value;
      if (event.type === "error" || isRecord(event.error) || typeof event.error === "string")
        throw errorFromEvent(event, expected.secrets);
      const [, phase] =
        /^image_(?:generation|edit)\.(partial_image|completed)$/.exec(String(event.type)) ?? [];
      if (phase === "partial_image") {
        const { bytes, mediaType } = await toImage(event, expected);
        yield { kind: "partial", index: previews, bytes, mediaType };
        previews += 1;
      } else if (phase === "completed") {
        const image = await toImage(event, expected);
        expected.onReport(imageUsageOf(event.usage));
        images += 1;
        yield image;
        if (images < expected.n) continue;
        await drainBody(events, () => response.cancel(), drainTimeoutMs);
        return;
      }
    }
  } catch (error) {
    throw errorFromTransport(error, expected.signal);
  } finally {
    response.cancel();
  }
  if (images === 0) {
    throw new ProviderError("network", "The upstream's stream ended before its last event.");
  }
}

async function toImage({ b64_json, url }: Fields, { fetch }: ExpectedImages): Promise<Image> {
  if (b64_json instanceof Uint8Array) return imageOutput(b64_json);
  if (fetch === undefined || !isAddress(url)) throw noImage();
  if (!isDataUrl(url)) return imageOutput(await fetch(url));
  const { bytes, problem } = parseImageDataUrl(url);
  if (bytes === undefined) {
    throw new ProviderError("bad_answer", "The upstream sent an image that is not base64.", {
      cause: problem,
    });
  }
  return imageOutput(bytes);
}
