/** A custom resource definition, as far as it is read here. */
export interface CustomResourceDefinition {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

type Schema = { readonly [name: string]: unknown };

/** A JSON schema for each version of a custom resource, and the name of the file that kubeconform looks for. */
export function crdJsonSchemas({ spec }: CustomResourceDefinition): { fileName: string; schema: Schema }[] {
  return spec.versions.map(({ name, schema }) => ({
    fileName: `${spec.names.kind.toLowerCase()}_${name}.json`,
    schema: strict(schema.openAPIV3Schema),
  }));
}

/** The same schema, which refuses members that it does not name, as an API server does that is asked to be strict. */
function strict(schema: Schema): Schema {
  const { properties, items, additionalProperties, nullable, ...rest } = schema;
  const own = rest["x-kubernetes-int-or-string"] === true ? { ...rest, type: ["integer", "string"] } : rest;
  const open = rest["x-kubernetes-preserve-unknown-fields"] === true;
  return {
    ...own,
    ...(nullable === true && typeof own.type === "string" ? { type: [own.type, "null"] } : {}),
    ...(properties === undefined ? {} : { properties: eachStrict(properties as Record<string, Schema>) }),
    ...(properties === undefined || open ? {} : { additionalProperties: false }),
    ...(items === undefined ? {} : { items: strict(items as Schema) }),
    ...(isSchema(additionalProperties) ? { additionalProperties: strict(additionalProperties) } : {}),
  };
}

function eachStrict(properties: Readonly<Record<string, Schema>>): Record<string, Schema> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, strict(schema)]));
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null;
}
