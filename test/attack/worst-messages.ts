/**
 * The worst request messages of an RPC that fit into so many bytes, in the formats that clients may send: most elements
 * for each byte, for every list, map and message that its descriptor names, and for what it does not name.
 */
import type { DescField, DescMessage, DescMethod } from "@bufbuild/protobuf";

/** A message to be sent as it is. */
export interface WorstMessage {
  readonly name: string;
  readonly format: "json" | "proto";
  readonly bytes: Buffer;
}

/** No schema of ours has it. */
const unknownName = "zz";
const unknownNumber = 15;
const wireTypes = { varint: 0, lengthDelimited: 2, group: 3, groupEnd: 4 } as const;
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

function jsonList(path: readonly DescField[], maxBytes: number): string {
  const last = path.at(-1);
  const list = last?.fieldKind === "map" ? `{${filled('"":""', maxBytes)}}` : `[${filled("{}", maxBytes)}]`;
  return path.reduceRight(
    (inner, { jsonName }, index) => `{"${jsonName}":${index === path.length - 1 ? list : inner}}`,
    "",
  );
}

function protoList(path: readonly DescField[], maxBytes: number): Buffer {
  const numbers = path.map(({ number }) => number);
  const last = numbers.at(-1) ?? 0;
  const list = repeated(tag(last, wireTypes.lengthDelimited, 0), maxBytes);
  return numbers.slice(0, -1).reduceRight((inner, number) => {
    return Buffer.concat([tag(number, wireTypes.lengthDelimited, inner.length), inner]);
  }, list);
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
