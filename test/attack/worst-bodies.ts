/** As much of JSON Schema as says where in a body there is room for what. */
export interface PlaceSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly items?: PlaceSchema;
  readonly properties?: Readonly<Record<string, PlaceSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: PlaceSchema | boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** A body that costs its receiver as much as possible, of about so many bytes; some ignore the number. */
export interface WorstBody {
  readonly name: string;
  make(bytes: number): Buffer;
}

/** The JSON text of a value of about so many bytes. */
type Filling = (bytes: number) => string;

/** Below what the bounds on members let through, with room for the rest of a body. */
const manyMembers = 1000;
const repeat = (text: string) => (bytes: number) => text.repeat(Math.max(1, Math.floor(bytes / text.length)));
const textOf =
  (unit: string, start = ""): Filling =>
  (bytes) =>
    `"${start}${repeat(unit)(bytes - start.length - 2)}"`;
const listOf =
  (item: string): Filling =>
  (bytes) =>
    `[${repeat(`${item},`)(bytes - item.length - 2)}${item}]`;
const mapOf =
  (member: string): Filling =>
  (bytes) => {
    const count = Math.max(1, Math.floor(bytes / (member.length + 12)));
    return `{${Array.from({ length: count }, (_, index) => `"${index.toString(36)}_":${member}`).join()}}`;
  };
const most =
  (filling: Filling, memberLength: number): Filling =>
  () =>
    filling(manyMembers * memberLength);
const deep =
  (open: string, close: string): Filling =>
  (bytes) => {
    const levels = Math.max(1, Math.floor(bytes / (open.length + close.length)));
    return `${open.repeat(levels)}1${close.repeat(levels)}`;
  };

const plainTexts: Readonly<Record<string, Filling>> = {
  "letters and one wide one": (bytes) => `"${"x".repeat(bytes - 8)}語"`,
};
const texts: Readonly<Record<string, Filling>> = {
  ...plainTexts,
  letters: textOf("x"),
  "wide letters": (bytes) => `"${"語".repeat(Math.floor(bytes / 3) - 1)}"`,
  escapes: textOf("\\u0041"),
  "escaped pairs": textOf("\\ud83d\\ude00"),
  quotes: textOf('\\"'),
  backslashes: textOf("\\\\"),
  "an image": textOf("AAAA", "data:image/png;base64,"),
  "an escaped image": textOf("\\u0041", "data:image\\/png;base64,"),
  "no image": textOf("A", "data:image/png;base64,="),
  "a time": textOf("T1:"),
};
const lists: Readonly<Record<string, Filling>> = {
  numbers: listOf("1"),
  "as many numbers as may be": most(listOf("1"), 2),
  lists: listOf("[]"),
  "as many lists as may be": most(listOf("[]"), 3),
  objects: listOf("{}"),
  "as many objects as may be": most(listOf("{}"), 3),
  texts: listOf('""'),
  "long texts": (bytes) => listOf(`"${"x".repeat(Math.min(bytes / 4, 66_000))}"`)(bytes),
  "texts that are not long": (bytes) => listOf(`"${"x".repeat(Math.min(bytes / 4, 60_000))}"`)(bytes),
  "nested lists": deep("[", "]"),
};
const maps: Readonly<Record<string, Filling>> = {
  "members of numbers": mapOf("1"),
  "as many members as may be": most(mapOf("1"), 13),
  "members of objects": mapOf("{}"),
  "as many members of objects as may be": most(mapOf("{}"), 14),
  "nested objects": deep('{"a":', "}"),
  "a long name": (bytes) => `{${textOf("x")(bytes)}:1}`,
};
const numbers: Readonly<Record<string, Filling>> = {
  digits: repeat("1"),
  decimals: (bytes) => `0.${"1".repeat(bytes)}`,
};
const everything = {
  ...texts,
  ...lists,
  ...maps,
  ...numbers,
  blanks: (bytes: number) => `${" ".repeat(bytes)}1`,
};

/**
 * The worst bodies of an operation: for each list, map, text and number in its schema what is worst in its place, and
 * everything in a member that nobody knows, and in place of the body. `least` is a body that is accepted.
 */
export function worstBodies(schema: PlaceSchema, least: object): readonly WorstBody[] {
  const placed = placesOf(schema, []).flatMap(({ path, place }) =>
    Object.entries(fillingsOf(place)).map(([name, filling]) => ({
      name: `${path.join(".")}: ${name}`,
      make: (bytes: number) => bodyWith(insert(least, schema, path), filling, bytes),
    })),
  );
  const fullLists = placesOf(schema, []).flatMap(({ path, place: { items, maxItems = 1 } }) =>
    openTextsOf(items).flatMap((textPath) =>
      [2, maxItems].map((count) => ({
        name: `${path.join(".")}: ${count} images`,
        make: (bytes: number) =>
          fullList(insert(least, schema, path), insert(undefined, items ?? {}, textPath), bytes, count),
      })),
    ),
  );
  const elsewhere = Object.entries(everything).flatMap(([name, filling]) => [
    { name: `unknown: ${name}`, make: (bytes: number) => bodyWith({ ...least, zz: hole }, filling, bytes) },
    { name: `whole: ${name}`, make: (bytes: number) => bodyWith(hole, filling, bytes) },
    { name: `broken: ${name}`, make: (bytes: number) => Buffer.from(filling(bytes).slice(0, -1)) },
  ]);
  return [...placed, ...fullLists, ...elsewhere];
}

const hole = "(here)";

function bodyWith(body: unknown, filling: Filling, bytes: number): Buffer {
  const [before = "", after = ""] = JSON.stringify(body).split(JSON.stringify(hole));
  return Buffer.from(before + filling(bytes - before.length - after.length) + after);
}

/** A list of so many items, each with an image in the hole. */
function fullList(body: unknown, item: unknown, bytes: number, count: number): Buffer {
  const image = Math.floor(bytes / count / 4) * 4 - 1024;
  const items = Array.from({ length: count }, () =>
    bodyWith(item, textOf("AAAA", "data:image/png;base64,"), image),
  );
  return bodyWith(body, () => `[${items.join()}]`, bytes);
}

/** Where in a list's items a text of any length may stand. */
function openTextsOf(items: PlaceSchema | undefined): readonly (readonly string[])[] {
  if (items?.properties === undefined) return [];
  return placesOf(items, []).flatMap(({ path, place }) => (fillingsOf(place) === texts ? [path] : []));
}

interface Place {
  readonly path: readonly string[];
  readonly place: PlaceSchema;
}

const typesOf = ({ type = [] }: PlaceSchema) => (typeof type === "string" ? [type] : type);

/** Every part of a schema but its root; `*` is an item of a list or a member of a map. */
function placesOf(schema: PlaceSchema, path: readonly string[]): readonly Place[] {
  const members = Object.entries(schema.properties ?? {});
  const others = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
  const parts = [...members, ...[schema.items, others].map((part) => ["*", part] as const)];
  return parts.flatMap(([name, place]) => {
    if (place === undefined) return [];
    const below = [...path, name];
    return [{ path: below, place }, ...placesOf(place, below)];
  });
}

function fillingsOf(place: PlaceSchema): Readonly<Record<string, Filling>> {
  const types = typesOf(place);
  const { enum: words, pattern, maxLength } = place;
  if (types.length === 0 && words === undefined) return everything;
  const isShort = words !== undefined || pattern !== undefined || maxLength !== undefined;
  if (types.join() === "string" && !isShort) return texts;
  return {
    ...(types.includes("string") || words !== undefined ? plainTexts : {}),
    ...(types.includes("array") ? lists : {}),
    ...(types.includes("object") ? maps : {}),
    ...(types.includes("number") || types.includes("integer") ? numbers : {}),
  };
}

/** A body with the hole at a path, and around it what the schema requires. */
function insert(value: unknown, schema: PlaceSchema, path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return hole;
  if (schema.items !== undefined) return [insert(undefined, schema.items, rest)];
  const member = name === "*" ? "other" : name;
  const place = schema.properties?.[name] ?? (schema.additionalProperties as PlaceSchema);
  const object = (value ?? leastOf(schema)) as Record<string, unknown>;
  return { ...object, [member]: insert(object[member], place, rest) };
}

/** The least value that keeps a schema, as far as bodies of ours need it. */
function leastOf(schema: PlaceSchema): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  const [type] = typesOf(schema);
  if (type === "array")
    return Array.from({ length: schema.minItems ?? 0 }, () => leastOf(schema.items ?? {}));
  if (type !== "object") return type === "string" ? "x" : 1;
  const members = (schema.required ?? []).map((name) => [name, leastOf(schema.properties?.[name] ?? {})]);
  return Object.fromEntries(members);
}
