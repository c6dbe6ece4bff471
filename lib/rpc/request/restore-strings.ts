/**
 * Puts the long strings of a JSON text into the message that was decoded without them: the stock decoder would copy an
 * image in base64 four times and hold the event loop for 20 ms a MiB.
 */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import {
  isReflectMessage,
  type ReflectList,
  type ReflectMap,
  type ReflectMessage,
  reflect,
} from "@bufbuild/protobuf/reflect";
import { asBuffer } from "../../limits/body-bytes.ts";
import type { LongStrings } from "../../limits/long-strings.ts";
import { DomainError } from "../../runtime/domain-error.ts";

const charactersPerGroup = 4;

/**
 * Replaces the names of strings in a message by what they stand for. Throws an error for what is no base64 where bytes
 * are due, and invalid_body when all texts together are longer than so many characters.
 */
export async function restoreStrings(
  schema: DescMessage,
  message: Message,
  strings: LongStrings,
  maxCharacters: number,
): Promise<void> {
  await new Restoration(strings, maxCharacters).restore(reflect(schema, message));
}

class Restoration {
  readonly #strings: LongStrings;
  readonly #maxCharacters: number;
  #characters = 0;

  constructor(strings: LongStrings, maxCharacters: number) {
    this.#strings = strings;
    this.#maxCharacters = maxCharacters;
  }

  /** Messages are set again where they were: those of some types (google.protobuf.Struct) are shown as copies. */
  async restore(message: ReflectMessage): Promise<void> {
    for (const field of message.fields) {
      if (!message.isSet(field)) continue;
      if (field.fieldKind === "message") {
        const inner = message.get(field);
        await this.restore(inner);
        message.set(field, inner);
      } else if (field.fieldKind === "scalar") {
        message.set(field, await this.#scalar(message.get(field)));
      } else if (field.fieldKind === "list") {
        await this.#items(message.get(field));
      } else if (field.fieldKind === "map") {
        await this.#entries(message.get(field));
      }
    }
  }

  async #items(list: ReflectList): Promise<void> {
    for (const [index, item] of [...list].entries()) list.set(index, await this.#value(item));
  }

  async #entries(map: ReflectMap): Promise<void> {
    for (const [key, value] of [...map]) map.set(key, await this.#value(value));
  }

  async #value(value: unknown): Promise<unknown> {
    if (!isReflectMessage(value)) return await this.#scalar(value);
    await this.restore(value);
    return value;
  }

  async #scalar<V>(value: V): Promise<V | Uint8Array | string> {
    const isText = typeof value === "string";
    if (!isText && !(value instanceof Uint8Array)) return value;
    const name = isText ? value : asBuffer(value).toString("base64");
    const writtenBytes = this.#strings.bytesOf(name);
    if (writtenBytes === undefined) return value;
    return isText ? await this.#text(name) : await decodeBase64(this.#strings.read(name), writtenBytes);
  }

  async #text(name: string): Promise<string> {
    let text = "";
    for await (const piece of this.#strings.read(name)) {
      text += piece;
      this.#characters += piece.length;
      if (this.#characters > this.#maxCharacters) {
        const message = `must not have more than ${this.#maxCharacters} bytes of text`;
        throw DomainError.invalid([{ path: "", message }]);
      }
    }
    return text;
  }
}

/** The bytes of base64 with and without padding, of at most so many characters. */
async function decodeBase64(pieces: AsyncIterable<string>, maxCharacters: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil((maxCharacters * 3) / charactersPerGroup));
  let written = 0;
  let characters = 0;
  /** The last group, which may have padding. */
  let rest = "";
  for await (const piece of pieces) {
    const digits = rest + piece;
    const whole = digits.length - 1 - ((digits.length - 1) % charactersPerGroup);
    written += bytes.write(digits.slice(0, whole), written, "base64");
    characters += whole;
    rest = digits.slice(whole);
  }
  const last = rest.replace(/={1,2}$/, "");
  written += bytes.write(last, written, "base64");
  characters += last.length;
  if (written !== Math.floor((characters * 3) / charactersPerGroup)) throw new Error("invalid base64 string");
  return bytes.subarray(0, written);
}
