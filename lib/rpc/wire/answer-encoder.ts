import { type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { bytesTagOf, encodeEnvelope, encodeFieldHead, fieldMessageBytes } from "./envelope.ts";

/** Encodes messages of one type up to a limit. */
export class AnswerEncoder {
  readonly #schema: DescMessage;
  readonly #maxMessageBytes: number;
  /** Of types whose fields are alternatives: where these stand, and the tags of those that are bytes. */
  readonly #alternatives: { readonly name: string; readonly tags: ReadonlyMap<string, number> } | undefined;

  constructor(schema: DescMessage, maxMessageBytes: number) {
    this.#schema = schema;
    this.#maxMessageBytes = maxMessageBytes;
    const [first] = schema.oneofs;
    if (first?.fields.length !== schema.fields.length) return;
    const tags = first.fields.flatMap((field) => {
      const tag = field.scalar === ScalarType.BYTES ? bytesTagOf(field) : undefined;
      return tag === undefined ? [] : [[field.localName, tag] as const];
    });
    this.#alternatives = { name: first.localName, tags: new Map(tags) };
  }

  /** Throws ConnectError where it can't be encoded or is above the limit. */
  encode(message: Message): Uint8Array {
    const bytes = encodeMessage(this.#schema, message);
    checkWriteLimit(bytes.length, this.#maxMessageBytes);
    return bytes;
  }

  /** A message in its envelope, in parts; one that is nothing but a field of bytes with these as they are. */
  encodeEnvelope(message: Message): readonly Uint8Array[] {
    const field = this.#onlyField(message);
    if (field === undefined) return [encodeEnvelope(0, this.encode(message))];
    const { tag, bytes } = field;
    checkWriteLimit(fieldMessageBytes(bytes.length), this.#maxMessageBytes);
    const head = encodeFieldHead(tag, bytes.length);
    return bytes.length === 0 ? [head] : [head, bytes];
  }

  #onlyField(message: Message): { readonly tag: number; readonly bytes: Uint8Array } | undefined {
    if (this.#alternatives === undefined || (message.$unknown?.length ?? 0) > 0) return undefined;
    const { name, tags } = this.#alternatives;
    const { case: chosen, value } = (message as Message & Record<string, Alternative>)[name] ?? {};
    const tag = chosen === undefined ? undefined : tags.get(chosen);
    return tag === undefined || !(value instanceof Uint8Array) ? undefined : { tag, bytes: value };
  }
}

/** As messages hold it. */
interface Alternative {
  readonly case?: string | undefined;
  readonly value?: unknown;
}

/** Throws ConnectError with the library's words. */
export function encodeMessage(schema: DescMessage, message: Message): Uint8Array {
  try {
    return toBinary(schema, message);
  } catch (thrown) {
    const words = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ConnectError(`serialize binary: ${words}`, Code.Internal);
  }
}

/** Throws ConnectError with the library's words where a message is too long to be sent. */
export function checkWriteLimit(bytes: number, maxMessageBytes: number): void {
  if (bytes <= maxMessageBytes) return;
  const message = `message size ${bytes} is larger than configured writeMaxBytes ${maxMessageBytes}`;
  throw new ConnectError(message, Code.ResourceExhausted);
}
