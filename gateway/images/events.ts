/**
 * A generation as server-sent events.
 *
 * 1. Headers go out with the first event, or once the request is `keepAliveMs` old; from then on a comment fills every
 *    such time without an event.
 * 2. Comments and errors stand between events only, and only while the client takes what is written.
 * 3. The event of the last image that was asked for is ended by `end`, which knows the usage, or without it by a failure:
 *    that image is whole all the same.
 * 4. A failure inside of an event can't be reported in the stream: its connection is cut, and clients drop the event.
 */
import type {
  GenerationFinished,
  GenerationStarted,
  ImageStart,
  PartialImage,
  TextChunk,
} from "../../gen/media/image/v1/image_pb.ts";
import { encodeComment, eventEnd, eventStreamType } from "../../lib/http/sse-encode.ts";
import type { AnswerWriter } from "../http/back-pressure.ts";
import type { ErrorBody } from "../http/error-body.ts";
import type { Exchange } from "../http/exchange.ts";
import { type ImageAnswer, imageHeaders, type Written } from "./answer.ts";
import { Base64Stream, base64Of } from "./base64-stream.ts";
import type { ImageForm } from "./form.ts";

interface ImageEventsOptions {
  exchange: Exchange;
  writer: AnswerWriter;
  started: GenerationStarted;
  form: ImageForm;
  /** How many images were asked for. */
  n: number;
  /** Longest silence after the headers. */
  keepAliveMs: number;
  /** How long until the headers go out without an event. */
  headersInMs: number;
}

const keepAliveComment = encodeComment("keep-alive");

type Place = "between" | "inside" | "whole";

/** Writes the events of one generation. */
export class ImageEvents implements ImageAnswer {
  readonly #options: ImageEventsOptions;
  readonly #base64 = new Base64Stream();
  /** Where the stream stands: `whole` is inside of an event that lacks nothing but its end. */
  #place: Place = "between";
  #completed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ImageEventsOptions) {
    this.#options = options;
    this.#arm(Math.max(0, options.headersInMs)); // 1.
    options.exchange.failInBand = (body) => this.#fail(body);
  }

  async partial(partial: PartialImage): Promise<void> {
    const { writer, form } = this.#options;
    await this.#write(form.events.partialHead(partial), "inside");
    await writer.writeAll(base64Of(partial.data));
    await this.#write(`"${form.events.partialTail(partial)}`, "between");
  }

  text(chunk: TextChunk): Written {
    const event = this.#options.form.events.text(chunk);
    return event === undefined ? undefined : this.#write(event, "between");
  }

  imageStart(start: ImageStart): Written {
    return this.#write(this.#options.form.events.completedHead(start), "inside");
  }

  imageData(bytes: Uint8Array): Written {
    this.#timer?.refresh();
    return this.#options.writer.writeAll(this.#base64.push(bytes));
  }

  imageEnd(): Written {
    this.#completed += 1;
    const isLast = this.#completed >= this.#options.n;
    const rest = `${this.#base64.end()}"`;
    return isLast ? this.#write(rest, "whole") : this.#write(`${rest}}${eventEnd}`, "between"); // 3.
  }

  async end(finished: GenerationFinished): Promise<void> {
    const { events } = this.#options.form;
    const rest = this.#place === "whole" ? `${events.usage(finished)}}${eventEnd}` : "";
    await this.#write(rest + events.end, "between");
    this.#options.writer.response.end();
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  /** Says in the stream what went wrong and ends it; false when it can't. */
  #fail(body: ErrorBody): boolean {
    const { writer, form } = this.#options;
    const { response } = writer;
    if (this.#place === "inside" || response.writableNeedDrain || response.destroyed) return false; // 2., 4.
    const before = this.#place === "whole" ? `}${eventEnd}` : "";
    writer.push(before + form.events.error(body) + form.events.end);
    response.end();
    return true;
  }

  #keepAlive(): void {
    const { response } = this.#options.writer;
    if (this.#place === "between" && !response.writableNeedDrain && !response.destroyed) {
      this.#begin();
      this.#options.writer.push(keepAliveComment); // 2.
    }
    this.#timer?.refresh();
  }

  #begin(): void {
    const { keepAliveMs, started, writer } = this.#options;
    if (writer.response.headersSent) return;
    writer.response.writeHead(200, {
      ...imageHeaders(started, eventStreamType),
      "cache-control": "no-cache",
    });
    this.#arm(keepAliveMs); // 1.
  }

  #arm(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#keepAlive(), delayMs);
  }

  #write(text: string, place: Place): Written {
    this.#begin();
    this.#place = place;
    this.#timer?.refresh();
    return this.#options.writer.write(text);
  }
}
