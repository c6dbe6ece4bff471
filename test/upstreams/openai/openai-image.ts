import { setTimeout as pause } from "node:timers/promises";
import { createImageSource, type ImageSource } from "../stand-in/image-source.ts";
import type { StandInAnswer } from "../stand-in/stand-in-server.ts";
import type { DrawBehaviour, ImageBehaviour, VendorImageUsage } from "./openai-image-behaviour.ts";
import type { ImageRequestBody } from "./openai-image-request.ts";
import { errorOf, sendError } from "./openai-speech.ts";

/** Answers valid requests for images; each image is made and encoded once. */
export function createImageAnswers() {
  const source = createEncodedSource(createImageSource());
  return async (body: ImageRequestBody, behaviour: ImageBehaviour, answer: StandInAnswer): Promise<void> => {
    if (behaviour.kind === "plain") {
      answer.send(behaviour.status, behaviour.headers, behaviour.body);
    } else if (behaviour.kind === "error") {
      sendError(answer, errorOf(behaviour), behaviour.headers);
    } else {
      if (behaviour.delayMs !== undefined) await pause(behaviour.delayMs);
      await behaviour.beforeHeaders?.();
      const wire = new Wire(behaviour, answer);
      await (body.stream ? sendEvents : sendJson)(source, body, behaviour, wire);
    }
  };
}

/** Image number `index` of an answer as its members of a JSON object, or a preview of it. */
type EncodedSource = (body: ImageRequestBody, behaviour: DrawBehaviour, index: number) => Promise<Buffer>;

/** The grey of image number `index` of an answer; previews of a first image count down from it: -1, -2. */
export function shadeOf(index: number): number {
  return (((128 + index * 12) % 256) + 256) % 256;
}

/** What "auto" comes to. */
export function sizeOf({ size }: Pick<ImageRequestBody, "size">): { width: number; height: number } {
  const [width = 1024, height = 1024] = size === "auto" ? [] : size.split("x").map(Number);
  return { width, height };
}

function createEncodedSource(source: ImageSource): EncodedSource {
  const encoded = new Map<Buffer, Buffer>();
  return async (body, behaviour, index) => {
    const content = behaviour.content ?? "b64_json";
    if (content === "url") return Buffer.from('"url":"https://images.invalid/1.png"');
    if (content === "nothing") return Buffer.from('"revised_prompt":""');
    if (content === "noise") return Buffer.from('"b64_json":"*** not base64 ***"');
    if (content === "text")
      return Buffer.from(`"b64_json":"${Buffer.from("<p>text</p>").toString("base64")}"`);
    const image = await source.image({
      format: body.output_format,
      ...sizeOf(body),
      isTransparent: body.background === "transparent",
      shade: shadeOf(index),
      ...(behaviour.imageBytes !== undefined && { bytes: behaviour.imageBytes }),
    });
    const known = encoded.get(image);
    if (known !== undefined) return known;
    const members = Buffer.from(`"b64_json":"${image.toString("base64")}"`, "latin1");
    encoded.set(image, members);
    return members;
  };
}

/** The body on its way out, as far as the behaviour lets it. */
class Wire {
  readonly #behaviour: DrawBehaviour;
  readonly #answer: StandInAnswer;
  #leftBytes: number;

  constructor(behaviour: DrawBehaviour, answer: StandInAnswer) {
    this.#behaviour = behaviour;
    this.#answer = answer;
    this.#leftBytes = Math.min(behaviour.cutAfterBytes ?? Infinity, behaviour.stallAfterBytes ?? Infinity);
  }

  /** No more can be written. */
  get isOver(): boolean {
    return this.#answer.isClosed || this.#leftBytes < 0;
  }

  start(contentType: string, length?: number): void {
    const framing =
      length === undefined ? { "transfer-encoding": "chunked" } : { "content-length": String(length) };
    this.#answer.start(200, { "content-type": this.#behaviour.contentType ?? contentType, ...framing });
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.isOver) return;
    if (bytes.length <= this.#leftBytes) {
      this.#leftBytes -= bytes.length;
      await this.#answer.write(bytes);
      return;
    }
    if (this.#leftBytes > 0) await this.#answer.write(bytes.subarray(0, this.#leftBytes));
    this.#leftBytes = -1;
    if (this.#behaviour.cutAfterBytes === undefined) await this.#answer.closed;
    else await this.#answer.cut(this.#behaviour.cutWith);
  }

  /** Waits for a gate, unless the client leaves. */
  async wait(gate: Promise<void> | undefined): Promise<void> {
    if (gate !== undefined) await Promise.race([gate, this.#answer.closed]);
  }

  async end(): Promise<void> {
    if (this.isOver) return;
    await this.wait(this.#behaviour.beforeEnd?.());
    if (!this.#answer.isClosed) this.#answer.end();
  }
}

async function sendJson(
  source: EncodedSource,
  body: ImageRequestBody,
  behaviour: DrawBehaviour,
  wire: Wire,
): Promise<void> {
  const count = behaviour.count ?? body.n;
  const pieces: Uint8Array[] = [Buffer.from('{"created":1790000000,"data":[')];
  for (let index = 0; index < count; index += 1) {
    pieces.push(
      Buffer.from(index === 0 ? "{" : ",{"),
      await source(body, behaviour, index),
      Buffer.from("}"),
    );
  }
  const usage = usageOf(body, behaviour, count);
  const details = usage && { text_tokens: 0, image_tokens: usage.output_tokens };
  const rest = { ...echoOf(body), usage: usage && { output_tokens_details: details, ...usage } };
  pieces.push(Buffer.from(`],${JSON.stringify(rest).slice(1)}`));
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  wire.start("application/json", behaviour.framing === "length" ? length : undefined);
  for (const piece of pieces) await wire.write(piece);
  await wire.end();
}

async function sendEvents(
  source: EncodedSource,
  body: ImageRequestBody,
  behaviour: DrawBehaviour,
  wire: Wire,
): Promise<void> {
  const { partials = body.partial_images, latePartials = 0, count = 1, intervalMs } = behaviour;
  const name = body.images.length > 0 ? "image_edit" : "image_generation";
  let events = 0;
  const send = async (type: string, members: object, image: number) => {
    if (wire.isOver || events > (behaviour.errorAtEvent ?? Infinity)) return;
    if (intervalMs !== undefined && events > 0) await pause(intervalMs);
    await wire.wait(behaviour.beforeEvent?.(events));
    if (events === behaviour.errorAtEvent) await wire.write(errorEvent());
    else
      await wire.write(
        eventOf(`${name}.${type}`, await source(body, behaviour, image), { ...echoOf(body), ...members }),
      );
    events += 1;
  };
  wire.start("text/event-stream; charset=utf-8");
  for (let image = 0; image < count; image += 1) {
    for (let index = 0; index < partials; index += 1) {
      await send("partial_image", { partial_image_index: index }, index - partials);
    }
    if (behaviour.omitCompleted !== true)
      await send("completed", { usage: usageOf(body, behaviour, 1) }, image);
  }
  for (let index = partials; index < partials + latePartials; index += 1) {
    await send("partial_image", { partial_image_index: index }, -1);
  }
  await wire.end();
}

function eventOf(type: string, image: Buffer, members: object): Buffer {
  const head = `event: ${type}\ndata: {"type":"${type}",`;
  const rest = `,${JSON.stringify({ created_at: 1_790_000_000, ...members }).slice(1)}\n\n`;
  return Buffer.concat([Buffer.from(head), image, Buffer.from(rest)]);
}

function errorEvent(): Buffer {
  const error = { type: "image_generation_server_error", code: null, message: "It broke.", param: null };
  return Buffer.from(`event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`);
}

function echoOf(body: ImageRequestBody): object {
  const { width, height } = sizeOf(body);
  return {
    background: body.background === "transparent" ? "transparent" : "opaque",
    output_format: body.output_format,
    quality: qualityOf(body),
    size: `${width}x${height}`,
  };
}

function qualityOf({ quality }: ImageRequestBody): string {
  return quality === "auto" ? "medium" : quality;
}

const outputTokens: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160 };

function usageOf(
  body: ImageRequestBody,
  behaviour: DrawBehaviour,
  count: number,
): VendorImageUsage | undefined {
  if (behaviour.usage !== undefined) return behaviour.usage ?? undefined;
  const text = Math.ceil(body.prompt.length / 4);
  const image = 300 * body.images.length;
  const output = (outputTokens[qualityOf(body)] ?? 8320) * count;
  return {
    input_tokens: text + image,
    input_tokens_details: { text_tokens: text, image_tokens: image },
    output_tokens: output,
    total_tokens: text + image + output,
  };
}
