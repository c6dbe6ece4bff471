/**
 * Reads JSON whose images, as data URLs, make most of it. Its long strings are taken out of the text before that is
 * parsed and are read piece by piece, with pauses for other requests, so that neither their text nor the whole body's
 * is ever made.
 *
 * 1. What is accepted and refused is what it is for a body that is parsed whole; but of members given twice, both have
 *    to be valid Unicode.
 * 2. In place of a long string stands a name that no client can know. Before the object leaves here, each name is
 *    replaced: by the string, or where it is an image outside of the members for images by a text that is too long for
 *    any field, as the image was. The names that are left are those of `images`.
 * 3. A string longer than any field takes is cut to a length that is still too long.
 */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type DataUrlContent, ImageDataUrlDecoder, isDataUrl } from "../../lib/http/data-url.ts";
import type { StringSpan } from "../../lib/limits/json-bounds.ts";
import type { BodyBytes } from "./body-bytes.ts";
import { maxTextBytes } from "./generation-fields.ts";
import { checkJsonHeaders, invalidBody, type JsonObject, parseJsonObject } from "./json-body.ts";
import { jsonStringPieces } from "./json-string.ts";

/** A body's object, and the images in it by the texts that stand in their place. */
export interface LargeJson {
  readonly value: JsonObject;
  readonly images: ReadonlyMap<string, DataUrlContent>;
}

/** From how many bytes on a string is long: no field but a prompt takes more. */
export const longStringBytes = 64 << 10;

const mebibyte = 1 << 20;
/** Of what is left without the long strings: sixteen short images and all other fields at their longest. */
const maxRestBytes = 2 * mebibyte;
const bytesPerTurn = mebibyte / 2;
const urlStartLength = 100;
const tooLongText = "x".repeat(maxTextBytes + 1);

/** The object of a body with these long strings. Throws what `parseJsonBody` throws. */
export async function parseLargeJsonBody(
  body: BodyBytes,
  longStrings: readonly StringSpan[],
  headers: IncomingHttpHeaders,
  imagesMembers: readonly string[],
): Promise<LargeJson> {
  checkJsonHeaders(headers);
  // In the place of a URL it is one.
  const prefix = `data:${randomUUID()}`;
  const value = parseJsonObject(withoutLongStrings(body, longStrings, prefix));
  const images = new Map<string, DataUrlContent>();
  const texts = new Map<string, string>();
  let bytesInTurn = 0;
  for (const [index, span] of longStrings.entries()) {
    const sink = new LongStringSink();
    for (const piece of jsonStringPieces(body.pieces(span.from, span.until))) {
      sink.take(piece.text);
      bytesInTurn += piece.bytes;
      if (bytesInTurn < bytesPerTurn) continue;
      bytesInTurn = 0;
      await nextTurn();
    }
    const { image, text } = sink.finish();
    // Its bytes were put together.
    if (image !== undefined) await nextTurn();
    texts.set(prefix + index, text);
    if (image !== undefined) images.set(prefix + index, image);
  }
  if (longStrings.length > 0) putBack(value, texts, { images, imagesMembers });
  return { value, images };
}

function withoutLongStrings(body: BodyBytes, longStrings: readonly StringSpan[], prefix: string): Buffer {
  const longBytes = longStrings.reduce((sum, { from, until }) => sum + until - from, 0);
  if (body.size - longBytes > maxRestBytes) {
    throw invalidBody(`must not be longer than ${maxRestBytes / mebibyte} MiB without its images`);
  }
  if (longStrings.length === 0) return body.whole();
  const parts: Buffer[] = [];
  let at = 0;
  for (const [index, { from, until }] of longStrings.entries()) {
    parts.push(...body.pieces(at, from), Buffer.from(prefix + index));
    at = until;
  }
  return Buffer.concat([...parts, ...body.pieces(at, body.size)]);
}

/** Takes a string's text for an image or for what it is. */
class LongStringSink {
  #start: string | undefined = "";
  #text = "";
  #decoder: ImageDataUrlDecoder | undefined;

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
    if (isDataUrl(start)) this.#decoder = new ImageDataUrlDecoder();
    this.#pass(start);
  }

  #pass(text: string): void {
    if (this.#decoder !== undefined) this.#decoder.take(text);
    else if (this.#text.length <= maxTextBytes) this.#text += text;
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
