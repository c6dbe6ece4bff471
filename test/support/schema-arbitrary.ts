import fc, { type Arbitrary } from "fast-check";

/** As much of JSON Schema as the bodies of our operations are described in. */
export interface BodySchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: BodySchema;
  readonly properties?: Readonly<Record<string, BodySchema>>;
  readonly required?: readonly string[];
}

/** What stands in place of what a schema says, by path: `provider.only.*` is a member of a list. */
export type InPlace = Readonly<Record<string, Arbitrary<unknown>>>;

/** Values that keep a schema as JSON; optional members that are absent are undefined. Throws for a schema that it does not know. */
export function valuesOf(schema: BodySchema, inPlace: InPlace = {}, path = ""): Arbitrary<unknown> {
  const given = inPlace[path];
  if (given !== undefined) return given;
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const { minimum = -1000, maximum = 1000, minLength = 0, maxLength = 64 } = schema;
  switch (schema.type) {
    case "object":
      return objectsOf(schema, inPlace, path);
    case "array": {
      const length = { minLength: schema.minItems ?? 0, maxLength: Math.min(schema.maxItems ?? 3, 3) };
      return fc.array(valuesOf(schema.items ?? {}, inPlace, join(path, "*")), length);
    }
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.integer({ min: minimum, max: maximum });
    case "number":
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case "string":
      if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern));
      return fc.string({ minLength, maxLength: Math.min(maxLength, 64) });
    default:
      throw new Error(`no values of ${path === "" ? "the schema" : path}: ${JSON.stringify(schema)}`);
  }
}

function objectsOf(schema: BodySchema, inPlace: InPlace, path: string): Arbitrary<object> {
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const values = valuesOf(member, inPlace, join(path, name));
    return [name, schema.required?.includes(name) ? values : perhaps(values)] as const;
  });
  return fc.record(Object.fromEntries(members));
}

/** One time in four; all members at once would rarely go together. */
function perhaps(values: Arbitrary<unknown>): Arbitrary<unknown> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: values });
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
