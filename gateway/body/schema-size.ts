import type { Issue } from "../../lib/runtime/domain-error.ts";

/** The parts of a JSON Schema that say how much there may be, and where its parts are. */
interface SizedSchema {
  readonly properties?: Readonly<Record<string, SizedSchema>>;
  readonly additionalProperties?: SizedSchema | boolean;
  readonly maxProperties?: number;
  readonly items?: SizedSchema;
  readonly maxItems?: number;
}

/** The first list or map in a value that has more members than its schema allows; below it nothing is looked at. */
export function findOversize(schema: SizedSchema, value: unknown, path = ""): Issue | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  return Array.isArray(value) ? findInList(schema, value, path) : findInMap(schema, value, path);
}

function findInList({ items, maxItems }: SizedSchema, list: readonly unknown[], path: string) {
  if (items === undefined) return undefined;
  if (maxItems !== undefined && list.length > maxItems) {
    return { path, message: `must not have more than ${maxItems} items` };
  }
  return firstOf(list.entries(), ([index, item]) => findOversize(items, item, joinPath(path, String(index))));
}

function findInMap(schema: SizedSchema, map: object, path: string): Issue | undefined {
  const { properties = {}, additionalProperties, maxProperties } = schema;
  const members = new Map(Object.entries(map));
  if (maxProperties !== undefined && members.size > maxProperties) {
    return { path, message: `must not have more than ${maxProperties} properties` };
  }
  const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
  return firstOf(members, ([name, member]) => {
    const memberSchema = Object.hasOwn(properties, name) ? properties[name] : others;
    return memberSchema && findOversize(memberSchema, member, joinPath(path, name));
  });
}

function firstOf<T>(items: Iterable<T>, find: (item: T) => Issue | undefined): Issue | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A dotted path and a name below it. */
export function joinPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
