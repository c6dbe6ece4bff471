import Type, { type TSchema } from "typebox";
import { expect, test } from "vitest";
import { providerKeyBodySchema } from "../byok/body.ts";
import { createDestinationBodySchema, updateDestinationBodySchema } from "../destinations/body.ts";
import { imagesBodySchema } from "../images/body.ts";
import { createKeyBodySchema, rotateKeyBodySchema, updateKeyBodySchema } from "../keys/body.ts";
import { speechBodySchema } from "../speech/body.ts";
import { compileCheck } from "./json-body.ts";

const schemas: Readonly<Record<string, TSchema>> = {
  speech: speechBodySchema,
  images: imagesBodySchema,
  "a new key": createKeyBodySchema,
  "a key": updateKeyBodySchema,
  "a rotation": rotateKeyBodySchema,
  "a provider key": providerKeyBodySchema,
  "a new destination": createDestinationBodySchema,
  "a destination": updateDestinationBodySchema,
};

/** A list that counts how often an item is looked at. */
function countedList(items: readonly unknown[]) {
  const state = { looks: 0 };
  const list = new Proxy([...items], {
    get(target, name, receiver) {
      if (typeof name === "string" && /^\d+$/.test(name)) state.looks += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return { list, state };
}

test("the faults of a list that is too long are not looked for in its items", () => {
  const check = compileCheck(Type.Object({ list: Type.Array(Type.String(), { maxItems: 32 }) }));
  const { list, state } = countedList(Array(5000).fill(1));
  expect(() => check({ list })).toThrow("list: must not have more than 32 items");
  expect(state.looks).toBeLessThan(10);
});

test("nor are those of a map", () => {
  const check = compileCheck(speechBodySchema);
  const options = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`p${index}`, 1]));
  const body = { model: "a", input: "a", provider: { options } };
  expect(() => check(body)).toThrow("provider.options: must not have more than 32 properties");
});

interface Part {
  readonly items?: Part;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Part>>;
  readonly additionalProperties?: Part | boolean;
  readonly maxProperties?: number;
}

/** Lists without a short limit, and maps without one whose members are checked. */
function unboundedParts(part: Part, path = ""): string[] {
  const { items, properties = {}, additionalProperties: others } = part;
  const found: string[] = [];
  if (items !== undefined && (part.maxItems ?? 1e9) > 100) found.push(`${path}: a list`);
  const isChecked = typeof others === "object" && Object.keys(others).length > 0;
  if (isChecked && (part.maxProperties ?? 1e9) > 100) found.push(`${path}: a map`);
  const below = Object.entries(properties).flatMap(([name, member]) =>
    unboundedParts(member, `${path}.${name}`),
  );
  const ofItems = items === undefined ? [] : unboundedParts(items, `${path}.*`);
  return [...found, ...below, ...ofItems, ...(isChecked ? unboundedParts(others as Part, `${path}.*`) : [])];
}

test.for(Object.entries(schemas))("each list and map in the body of %s has a limit", ([, schema]) => {
  expect(unboundedParts(schema as Part)).toEqual([]);
});
