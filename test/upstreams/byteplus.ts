/**
 * A stand-in for the images of BytePlus ModelArk: `POST /api/v3/images/generations`, answered with events or with one JSON
 * text. Facts: docs.byteplus.com, "Image generation API", "Streaming response", "Error codes". With a stream the headers
 * wait for the first image; what is wrong with a request is answered before, as JSON. Of a set, an image that moderation
 * keeps back leaves the others be; an internal error ends the set.
 */
import { createImageSource } from "./stand-in/image-source.ts";
import { LimitedBody } from "./stand-in/limited-body.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "./stand-in/stand-in-server.ts";

/** What becomes of one request. */
export interface SeedreamBehaviour {
  /** An error in place of an answer. */
  readonly error?: { readonly status: number; readonly body: unknown };
  /** What comes of each image: itself, or the code of its failure. As many as asked for by default. */
  readonly images?: readonly (true | string)[];
  /** Before each image, from 0; the headers wait for the first. */
  readonly beforeImage?: (index: number) => Promise<void> | undefined;
  /** In place of its size. */
  readonly pixels?: { readonly width: number; readonly height: number };
  /** In place of its base64. */
  readonly b64Json?: unknown;
  /** An event in front of the images. */
  readonly first?: object;
  /** Of the last event; null: it states none. */
  readonly usage?: object | null;
  /** How the stream ends: as usual, without its last event, or never. */
  readonly end?: "cleanly" | "early" | "never";
  /** JSON over several lines, and comments between events. */
  readonly isOddlyFramed?: boolean;
  /** Breaks off after so many bytes of the body. */
  readonly cutAfterBytes?: number;
}

/** The stand-in and how it behaves next. */
export interface SeedreamUpstream extends StandIn {
  /** Behaves so towards the next request only. */
  next(behaviour: SeedreamBehaviour): void;
}

/** Each model's least pixels, and whether it takes an output format. */
const models: ReadonlyMap<string, { readonly leastPixels: number; readonly takesFormat: boolean }> = new Map([
  ["seedream-5-0-260128", { leastPixels: 2560 * 1440, takesFormat: true }],
  ["seedream-4-5-251128", { leastPixels: 2560 * 1440, takesFormat: false }],
  ["seedream-4-0-250828", { leastPixels: 1280 * 720, takesFormat: false }],
]);
const mostPixels = 4096 * 4096;
const mostImages = 15;

interface SeedreamBody {
  readonly model: string;
  readonly prompt: string;
  readonly image?: string | readonly string[];
  readonly size?: string;
  readonly stream?: boolean;
  readonly output_format?: "png" | "jpeg";
  readonly response_format?: string;
  readonly sequential_image_generation?: string;
  readonly sequential_image_generation_options?: { readonly max_images?: number };
}

/** Starts it. */
export async function startSeedreamUpstream(apiKey = "test-key"): Promise<SeedreamUpstream> {
  const queue: SeedreamBehaviour[] = [];
  const standIn = await startStandIn(async (request, answer) => {
    const refused = refusalOf(request, apiKey);
    const behaviour = refused === undefined ? (queue.shift() ?? {}) : {};
    const error = refused ?? behaviour.error;
    if (error !== undefined) {
      answer.send(error.status, { "content-type": "application/json" }, textOf(error.body));
      return;
    }
    const body = request.json as SeedreamBody;
    if (body.stream === true) await sendEvents(body, behaviour, answer);
    else await sendJson(body, behaviour, answer);
  });
  return Object.assign(standIn, { next: (behaviour: SeedreamBehaviour) => void queue.push(behaviour) });
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : JSON.stringify(body);
}

const refusal = (status: number, code: string, message: string, type: string) => ({
  status,
  body: { error: { code, message: `${message} Request id: 0217abc`, param: "", type } },
});

function refusalOf({ method, path, headers, json }: ReceivedRequest, apiKey: string) {
  if (headers.authorization !== `Bearer ${apiKey}`) {
    const message = "the API key or AK/SK in the request is missing or invalid.";
    return refusal(401, "AuthenticationError", message, "Unauthorized");
  }
  if (method !== "POST" || path !== "/api/v3/images/generations") {
    return refusal(404, "InvalidAction", "The specified action is invalid.", "NotFound");
  }
  const body = (json ?? {}) as SeedreamBody;
  const model = models.get(body.model);
  if (model === undefined) {
    const message = `The model or endpoint ${body.model} does not exist or you do not have access to it.`;
    return refusal(404, "InvalidEndpointOrModel.NotFound", message, "NotFound");
  }
  const fault = faultOf(body, model.leastPixels, model.takesFormat);
  if (fault === undefined) return undefined;
  const message = `The parameter \`${fault}\` specified in the request is not valid.`;
  return refusal(400, "InvalidParameter", message, "BadRequest");
}

function faultOf(body: SeedreamBody, leastPixels: number, takesFormat: boolean): string | undefined {
  const { prompt, size = "2K", output_format: format, sequential_image_generation: sequential } = body;
  if (typeof prompt !== "string" || prompt === "") return "prompt";
  const [, width, height] = /^(\d+)x(\d+)$/.exec(size) ?? [];
  const pixels = Number(width) * Number(height);
  const ratio = Number(width) / Number(height);
  const fits = pixels >= leastPixels && pixels <= mostPixels && ratio >= 1 / 16 && ratio <= 16;
  if (!fits && !/^[124]K$/.test(size)) return "size";
  if (format !== undefined && !(takesFormat && ["png", "jpeg"].includes(format))) return "output_format";
  if (sequential !== undefined && !["auto", "disabled"].includes(sequential)) {
    return "sequential_image_generation";
  }
  const images = [body.image ?? []].flat();
  if (!images.every((image) => /^(https?:|data:image\/(png|jpeg|webp);base64,)/.test(image))) return "image";
  if (images.length + askedOf(body) > mostImages) return "sequential_image_generation_options.max_images";
  return undefined;
}

function askedOf(body: SeedreamBody): number {
  if (body.sequential_image_generation !== "auto") return 1;
  return body.sequential_image_generation_options?.max_images ?? mostImages;
}

const source = createImageSource();

/** The image of a place in the answer that a client gets. */
export function seedreamImage(index: number, pixels = { width: 64, height: 48 }, format = "jpeg" as const) {
  return source.image({ format, ...pixels, isTransparent: false, shade: 40 + index });
}

async function imageOf(
  { size, output_format: format = "jpeg", response_format }: SeedreamBody,
  { pixels, b64Json }: SeedreamBehaviour,
  index: number,
): Promise<object> {
  const [width = 2048, height = 2048] = /^\d+x\d+$/.test(size ?? "")
    ? (size ?? "").split("x").map(Number)
    : [];
  const shape = pixels ?? { width, height };
  const image = await source.image({ format, ...shape, isTransparent: false, shade: 40 + index });
  return {
    ...(response_format === "b64_json"
      ? { b64_json: b64Json ?? image.toString("base64") }
      : { url: "https://ark-content-generation.example/gone" }),
    size: `${width}x${height}`,
  };
}

function errorOf(code: string): object {
  return { error: { code, message: "The request failed because of the output image." } };
}

const usageOf = (images: number) => ({
  generated_images: images,
  output_tokens: 16_384 * images,
  total_tokens: 16_384 * images,
});

function placesOf(body: SeedreamBody, { images }: SeedreamBehaviour): readonly (true | string)[] {
  const all = images ?? Array.from({ length: askedOf(body) }, () => true as const);
  const end = all.indexOf("InternalServiceError");
  return end < 0 ? all : all.slice(0, end + 1);
}

async function sendEvents(
  request: SeedreamBody,
  behaviour: SeedreamBehaviour,
  answer: StandInAnswer,
): Promise<void> {
  const { beforeImage, isOddlyFramed, first, end = "cleanly", usage } = behaviour;
  const body = new LimitedBody(answer, behaviour.cutAfterBytes);
  const send = (type: string, rest: object) => {
    const json = JSON.stringify(
      { type, model: request.model, created: 1757396757, ...rest },
      null,
      isOddlyFramed ? 2 : 0,
    );
    const comment = isOddlyFramed ? ": still there\r\n\r\n" : "";
    return body.write(`${comment}event: ${type}\ndata: ${json.replaceAll("\n", "\ndata: ")}\n\n`);
  };
  const places = placesOf(request, behaviour);
  for (const [index, place] of places.entries()) {
    const gate = beforeImage?.(index);
    if (gate !== undefined) await Promise.race([gate, answer.closed]);
    const content = place === true ? await imageOf(request, behaviour, index) : errorOf(place);
    if (answer.isClosed) return;
    if (index === 0) {
      answer.start(200, { "content-type": "text/event-stream; charset=utf-8", "x-request-id": "0217abc" });
      if (first !== undefined) await body.write(`data: ${JSON.stringify(first)}\n\n`);
    }
    const type = `image_generation.partial_${place === true ? "succeeded" : "failed"}`;
    await send(type, { image_index: index, ...content });
  }
  if (end === "never") return;
  if (end === "cleanly") {
    const made = usageOf(places.filter((place) => place === true).length);
    await send("image_generation.completed", usage === null ? {} : { usage: usage ?? made });
    await body.write("data: [DONE]\n\n");
  }
  await body.end();
}

async function sendJson(
  request: SeedreamBody,
  behaviour: SeedreamBehaviour,
  answer: StandInAnswer,
): Promise<void> {
  const places = placesOf(request, behaviour);
  const data = await Promise.all(
    places.map((place, index) => (place === true ? imageOf(request, behaviour, index) : errorOf(place))),
  );
  const usage = usageOf(places.filter((place) => place === true).length);
  const headers = { "content-type": "application/json" };
  answer.send(200, headers, textOf({ model: request.model, created: 1757323224, data, usage }));
}
