/**
 * Large texts in JSON, which are images in base64, go past the parser: the stock decoder would copy each four times and
 * hold the event loop for 20 ms a MiB.
 *
 * 1. Each is replaced by a short one that nobody else can have written. After decoding, its bytes take the place of
 *    those that the short one stands for, or its text that of the short text.
 * 2. Texts with escapes stay where they are; base64 has none.
 * 3. Base64 is decoded in pieces, with a turn of the event loop after each.
 */
import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import {
  isReflectMessage,
  type ReflectList,
  type ReflectMap,
  type ReflectMessage,
  reflect,
} from "@bufbuild/protobuf/reflect";

const largeTextBytes = 64 << 10;
/** A multiple of 4, so that each piece ends with a whole group. */
const pieceCharacters = 1 << 20;
const quote = 0x22;
const backslash = 0x5c;
const padding = 0x3d;

/** A JSON text without its large texts. */
export interface CutJson {
  readonly json: Buffer;
  /** What stood in place of each short text. */
  readonly texts: ReadonlyMap<string, Buffer>;
}

/** Cuts the large texts out of what may be JSON; the rest is as it was. */
export function cutLargeTexts(json: Buffer): CutJson {
  const kept: Buffer[] = [];
  const texts = new Map<string, Buffer>();
  let keptTo = 0;
  for (let start = json.indexOf(quote); start >= 0; ) {
    const end = endOfText(json, start + 1);
    if (end < 0) break;
    const text = json.subarray(start + 1, end);
    if (text.length >= largeTextBytes && !text.includes(backslash)) {
      const short = randomBytes(24).toString("base64");
      kept.push(json.subarray(keptTo, start + 1), Buffer.from(short));
      texts.set(short, text);
      keptTo = end;
    }
    start = json.indexOf(quote, end + 1);
  }
  if (texts.size === 0) return { json, texts };
  return { json: Buffer.concat([...kept, json.subarray(keptTo)]), texts };
}

/** Where the quote stands that is behind an even number of backslashes; -1 where there is none. */
function endOfText(json: Buffer, from: number): number {
  for (let at = json.indexOf(quote, from); at >= 0; at = json.indexOf(quote, at + 1)) {
    let first = at;
    while (first > from && json[first - 1] === backslash) first -= 1;
    if ((at - first) % 2 === 0) return at;
  }
  return -1;
}

/** Puts the texts that were cut out into the decoded message. Throws an error for what is no base64 where bytes are due. */
export async function restoreLargeTexts(
  schema: DescMessage,
  message: Message,
  texts: CutJson["texts"],
): Promise<void> {
  if (texts.size > 0) await restore(reflect(schema, message), texts);
}

/** Messages are set again where they were: those of some types (google.protobuf.Struct) are shown as copies. */
async function restore(message: ReflectMessage, texts: CutJson["texts"]): Promise<void> {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    if (field.fieldKind === "message") {
      const inner = message.get(field);
      await restore(inner, texts);
      message.set(field, inner);
    } else if (field.fieldKind === "scalar") {
      message.set(field, await restoreScalar(message.get(field), texts));
    } else if (field.fieldKind === "list") {
      await restoreItems(message.get(field), texts);
    } else if (field.fieldKind === "map") {
      await restoreEntries(message.get(field), texts);
    }
  }
}

async function restoreItems(list: ReflectList, texts: CutJson["texts"]): Promise<void> {
  for (const [index, item] of [...list].entries()) list.set(index, await restoreValue(item, texts));
}

async function restoreEntries(map: ReflectMap, texts: CutJson["texts"]): Promise<void> {
  for (const [key, value] of [...map]) map.set(key, await restoreValue(value, texts));
}

async function restoreValue(value: unknown, texts: CutJson["texts"]): Promise<unknown> {
  if (!isReflectMessage(value)) return restoreScalar(value, texts);
  await restore(value, texts);
  return value;
}

async function restoreScalar<V>(value: V, texts: CutJson["texts"]): Promise<V | Uint8Array | string> {
  if (typeof value === "string") return texts.get(value)?.toString("utf8") ?? value;
  if (!(value instanceof Uint8Array)) return value;
  const text = texts.get(Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64"));
  return text === undefined ? value : decodeBase64(text);
}

async function decodeBase64(text: Buffer): Promise<Uint8Array> {
  let characters = text.length;
  while (characters > 0 && text[characters - 1] === padding && text.length - characters < 2) characters -= 1;
  const bytes = Buffer.allocUnsafeSlow(Math.floor((characters * 3) / 4));
  let written = 0;
  for (let at = 0; at < characters; at += pieceCharacters) {
    const piece = text.toString("latin1", at, Math.min(at + pieceCharacters, characters));
    written += bytes.write(piece, written, "base64");
    await nextTurn();
  }
  if (written !== bytes.length) throw new Error("invalid base64 string");
  return bytes;
}
