/**
 * The worst request messages of an RPC that fit into so many bytes, in the formats that clients may send: most elements
 * for each byte, for every list, map and message that its descriptor names, and for what it does not name; and long
 * texts, bytes and free objects in the first field that takes such.
 */
import { type DescField, type DescMessage, type DescMethod, ScalarType } from "@bufbuild/protobuf";

/** A message to be sent as it is. */
export interface WorstMessage {
  readonly name: string;
  readonly format: "json" | "proto";
  readonly bytes: Buffer;
}

/** No schema of ours has it. */
const unknownName = "zz";
const unknownNumber = 15;
/** Below what the bound on values lets through, in both formats. */
const manyValues = 3000;
const wireTypes = { varint: 0, lengthDelimited: 2, group: 3, groupEnd: 4 } as const;
/** Bytes of a message for what stands around its text. */
const reserve = 512;
const structType = "google.protobuf.Struct";
/** Depth up to which lists within messages are looked for. */
const deepest = 3;

/** Every worst message of a method. */
export function worstMessages({ input }: DescMethod, maxBytes: number): readonly WorstMessage[] {
  const json = (name: string, text: string): WorstMessage => {
    return { name: `json ${name}`, format: "json", bytes: Buffer.from(text) };
  };
  const proto = (name: string, bytes: Buffer): WorstMessage => {
    return { name: `proto ${name}`, format: "proto", bytes };
  };
  return [
    json("unknown lists", `{"${unknownName}":[${filled("[]", maxBytes)}]}`),
    json("unknown members", `{${filled('"zz":0', maxBytes)}}`),
    json("depth", `{"${unknownName}":${"[".repeat(maxBytes / 2)}${"]".repeat(maxBytes / 2)}}`),
    proto("unknown fields", repeated(tag(unknownNumber, wireTypes.varint, 0), maxBytes)),
    proto("unknown groups", groups(maxBytes)),
    proto("cut short", Buffer.from([tagByte(1, wireTypes.lengthDelimited), 0xff, 0xff, 0xff, 0x07])),
    ...freeObjects(input, maxBytes),
    ...firstOf(input, isScalar(ScalarType.STRING)).flatMap((path) => [
      json("letters and one wide one", jsonAt(path, `"${"x".repeat(maxBytes - reserve)}語"`)),
      json("escapes", jsonAt(path, `"${"\\u0041".repeat((maxBytes - reserve) / 6)}"`)),
      proto("letters and one wide one", protoAt(path, Buffer.from(`${"x".repeat(maxBytes - reserve)}語`))),
    ]),
    ...firstOf(input, isScalar(ScalarType.BYTES)).flatMap((path) => [
      json("base64", jsonAt(path, `"${"A".repeat((maxBytes - reserve) & ~3)}"`)),
      json("base64 in escapes", jsonAt(path, `"${"\\u0041".repeat(((maxBytes - reserve) / 6) & ~3)}"`)),
      proto("bytes", protoAt(path, Buffer.alloc(maxBytes - reserve))),
    ]),
    ...listsOf(input).flatMap((path) => [
      json(path.map(({ jsonName }) => jsonName).join("."), jsonList(path, maxBytes)),
      proto(path.map(({ name }) => name).join("."), protoList(path, maxBytes)),
    ]),
  ];
}

/** The ways to every list and map, through messages that hold one another. */
function listsOf(message: DescMessage, above: readonly DescField[] = []): readonly (readonly DescField[])[] {
  return message.fields.flatMap((field) => {
    const path = [...above, field];
    if (field.fieldKind === "list" || field.fieldKind === "map") return [path];
    return field.fieldKind === "message" && path.length < deepest ? listsOf(field.message, path) : [];
  });
}

type Place = readonly DescField[];

const isScalar = (type: ScalarType) => (field: DescField) =>
  (field.fieldKind === "scalar" || field.fieldKind === "list") && field.scalar === type;
const isStruct = (field: DescField) => field.fieldKind === "message" && field.message.typeName === structType;

/** The way to the first such field, the nearest of them; none where there is none. */
function firstOf(message: DescMessage, isMeant: (field: DescField) => boolean, depth = 1): readonly Place[] {
  const found = message.fields.find(isMeant);
  if (found !== undefined) return [[found]];
  if (depth === deepest) return [];
  for (const field of message.fields) {
    const isOurs = field.message !== undefined && !field.message.typeName.startsWith("google.");
    if (field.fieldKind === "map" || !isOurs) continue;
    const [below] = firstOf(field.message as DescMessage, isMeant, depth + 1);
    if (below !== undefined) return [[field, ...below]];
  }
  return [];
}

/** Lists of empty texts, as members of `google.protobuf.Struct`: full, and as long as they may be. */
function freeObjects(message: DescMessage, maxBytes: number): readonly WorstMessage[] {
  return firstOf(message, isStruct).flatMap((path) =>
    [Math.floor(maxBytes / 8), manyValues].flatMap((count): readonly WorstMessage[] => [
      {
        name: `json ${count} texts in an object`,
        format: "json",
        bytes: Buffer.from(jsonAt(path, `{"a":[${filled('""', 3 * count)}]}`)),
      },
      {
        name: `proto ${count} texts in an object`,
        format: "proto",
        bytes: protoAt(path, protoObject(count)),
      },
    ]),
  );
}

/** Source: google/protobuf/struct.proto. */
function protoObject(count: number): Buffer {
  const field = (number: number, content: Buffer) =>
    Buffer.concat([tag(number, wireTypes.lengthDelimited, content.length), content]);
  const texts = repeated(field(1, tag(3, wireTypes.lengthDelimited, 0)), 4 * count);
  return field(1, Buffer.concat([field(1, Buffer.from("a")), field(2, field(6, texts))]));
}

function jsonAt(path: Place, value: string): string {
  return path.reduceRight(
    (inner, { jsonName, fieldKind }) => `{"${jsonName}":${fieldKind === "list" ? `[${inner}]` : inner}}`,
    value,
  );
}

function protoAt(path: Place, content: Buffer): Buffer {
  return path.reduceRight(
    (inner, { number }) => Buffer.concat([tag(number, wireTypes.lengthDelimited, inner.length), inner]),
    content,
  );
}

function jsonList(path: readonly DescField[], maxBytes: number): string {
  const last = path.at(-1);
  const list = last?.fieldKind === "map" ? `{${filled('"":""', maxBytes)}}` : `[${filled("{}", maxBytes)}]`;
  return path.reduceRight(
    (inner, { jsonName }, index) => `{"${jsonName}":${index === path.length - 1 ? list : inner}}`,
    "",
  );
}

function protoList(path: readonly DescField[], maxBytes: number): Buffer {
  const last = path.at(-1)?.number ?? 0;
  return protoAt(path.slice(0, -1), repeated(tag(last, wireTypes.lengthDelimited, 0), maxBytes));
}

function groups(maxBytes: number): Buffer {
  const half = Math.floor(maxBytes / 2);
  return Buffer.concat([
    Buffer.alloc(half, tagByte(unknownNumber, wireTypes.group)),
    Buffer.alloc(half, tagByte(unknownNumber, wireTypes.groupEnd)),
  ]);
}

function filled(element: string, maxBytes: number): string {
  return `${element},`.repeat(Math.floor(maxBytes / (element.length + 1))).slice(0, -1);
}

function repeated(element: Buffer, maxBytes: number): Buffer {
  return Buffer.alloc(Math.floor(maxBytes / element.length) * element.length, element);
}

function tag(number: number, wireType: number, value: number): Buffer {
  return Buffer.from([...varint((number << 3) | wireType), ...varint(value)]);
}

function tagByte(number: number, wireType: number): number {
  return (number << 3) | wireType;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}
