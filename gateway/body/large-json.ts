/**
 * Reads JSON whose images, as data URLs, or texts make most of it (lib/limits/long-strings.ts).
 *
 * 1. What is accepted and refused is what it is for a body that is parsed whole; but of members given twice, both have
 *    to be valid Unicode.
 * 2. Before the object leaves here, each name of a long string is replaced: by the string, or where it is an image
 *    outside of the members for images by a text that is too long for any field, as the image was. The names that are
 *    left are those of `images`.
 * 3. A string longer than any field takes is cut to a length that is still too long.
 */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DataUrlContent, ImageDataUrlDecoder, isDataUrl } from "../../lib/http/data-url.ts";
import type { BodyBytes } from "../../lib/limits/body-bytes.ts";
import type { StringSpan } from "../../lib/limits/json-bounds.ts";
import { LongStrings } from "../../lib/limits/long-strings.ts";
import { maxTextBytes } from "./generation-fields.ts";
import { checkJsonHeaders, type JsonObject, parseJsonObject } from "./json-body.ts";

/** A body's object, and the images in it by the texts that stand in their place. */
export interface LargeJson {
  readonly value: JsonObject;
  readonly images: ReadonlyMap<string, DataUrlContent>;
}

/** Of what is left without the long strings: sixteen short images and all other fields at their longest. */
const maxRestBytes = 2 << 20;
const urlStartLength = 100;
const tooLongText = "x".repeat(maxTextBytes + 1);

/**
 * The object of a body with these long strings, and the images in the members of these names; without any, a data URL is
 * a text like others. Throws what `parseJsonBody` throws.
 */
export async function parseLargeJsonBody(
  body: BodyBytes,
  spans: readonly StringSpan[],
  headers: IncomingHttpHeaders,
  imagesMembers: readonly string[],
): Promise<LargeJson> {
  checkJsonHeaders(headers);
  // In the place of a URL it is one.
  const strings = new LongStrings(body, spans, `data:${randomUUID()}`);
  const value = parseJsonObject(strings.textWithout(maxRestBytes));
  const images = new Map<string, DataUrlContent>();
  const texts = new Map<string, string>();
  for (const name of strings.names) {
    const sink = new LongStringSink(imagesMembers.length > 0);
    for await (const piece of strings.read(name)) sink.take(piece); // 1.
    const { image, text } = sink.finish();
    // Its bytes were put together.
    if (image !== undefined) await nextTurn();
    texts.set(name, text);
    if (image !== undefined) images.set(name, image);
  }
  if (spans.length > 0) putBack(value, texts, { images, imagesMembers }); // 2.
  return { value, images };
}

/** Takes a string's text for an image or for what it is. */
class LongStringSink {
  readonly #takesImages: boolean;
  #start: string | undefined = "";
  #text = "";
  #decoder: ImageDataUrlDecoder | undefined;

  constructor(takesImages: boolean) {
    this.#takesImages = takesImages;
  }

  take(text: string): void {
    if (this.#start === undefined) {
      this.#pass(text);
      return;
    }
    this.#start += text;
    if (this.#start.length >= urlStartLength) this.#begin(this.#start);
  }

  finish(): { readonly image?: DataUrlContent; readonly text: string } {
    if (this.#start !== undefined) this.#begin(this.#start);
    return this.#decoder === undefined
      ? { text: this.#text }
      : { image: this.#decoder.finish(), text: tooLongText };
  }

  #begin(start: string): void {
    this.#start = undefined;
    if (this.#takesImages && isDataUrl(start)) this.#decoder = new ImageDataUrlDecoder();
    this.#pass(start);
  }

  #pass(text: string): void {
    if (this.#decoder !== undefined) this.#decoder.take(text);
    else if (this.#text.length <= maxTextBytes) this.#text += text; // 3.
  }
}

interface Kept {
  readonly images: ReadonlyMap<string, DataUrlContent>;
  readonly imagesMembers: readonly string[];
}

/** Replaces names by texts, but those of images in their members. */
function putBack(
  root: JsonObject,
  texts: ReadonlyMap<string, string>,
  { images, imagesMembers }: Kept,
): void {
  const open: { container: object; keepsImages: boolean }[] = [{ container: root, keepsImages: false }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { container, keepsImages } = next;
    for (const [key, member] of Object.entries(container)) {
      const keeps = keepsImages || (container === root && imagesMembers.includes(key));
      if (typeof member === "object" && member !== null) open.push({ container: member, keepsImages: keeps });
      if (typeof member !== "string" || (keeps && images.has(member))) continue;
      const value = texts.get(member);
      // Not by assignment: `__proto__` may be a member.
      if (value !== undefined) {
        Object.defineProperty(container, key, {
          value,
          enumerable: true,
          writable: true,
          configurable: true,
        });
      }
    }
  }
}
