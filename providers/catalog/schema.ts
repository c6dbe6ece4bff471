import { Type } from "typebox";
import { Compile } from "typebox/compile";
import { v5 } from "uuid";
import { parseDocument } from "yaml";
import { aspectRatios, imageBillables, imageUnits, resolutions } from "./image.ts";
import { ConnectionSchema } from "./provider-schema.ts";

const strict = { additionalProperties: false };
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const unique = { uniqueItems: true };

/** What can be billed of speech; `wire` names of SpeechPrice.billable. */
export const speechBillables = [
  "input_character",
  "input_utf8_byte",
  "input_text_token",
  "output_audio_token",
  "output_audio_second",
  "request",
] as const;

/** What one price of a speech endpoint bills for. */
export type SpeechBillable = (typeof speechBillables)[number];

/** Lines of a price list, whatever the medium. */
const maxPrices = 64;

const PriceSchema = Type.Object(
  {
    billable: Type.Enum([...speechBillables, ...imageBillables]),
    unit: Type.Optional(Type.Enum([...imageUnits])),
    variant: Type.Optional(text(100)),
    usd_per_million: Type.String({ pattern: "^[0-9]{1,9}(\\.[0-9]{1,9})?$" }),
    most_per_input_character: Type.Optional(Type.Number({ minimum: 0.001, maximum: 1000 })),
    most_tokens_each: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
  },
  strict,
);

/** A price list as it is written. */
export const PricesSchema = Type.Array(PriceSchema, { minItems: 1, maxItems: maxPrices });

/** What is known of a voice; its bare id where that is all. */
const VoiceSchema = Type.Union([
  text(200),
  Type.Object(
    {
      id: text(200),
      name: Type.Optional(text(200)),
      language: Type.Optional(Type.String({ pattern: "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$" })),
      gender: Type.Optional(Type.Enum(["female", "male", "neutral"])),
      preview_url: Type.Optional(Type.String({ pattern: "^https://[^\\s]+$", maxLength: 2000 })),
    },
    strict,
  ),
]);

const SpeechSchema = Type.Object(
  {
    formats: Type.Array(Type.Enum(["mp3", "pcm", "wav"]), { minItems: 1, ...unique }),
    sample_rate_hz: Type.Integer({ minimum: 8000, maximum: 48_000 }),
    channels: Type.Integer({ minimum: 1, maximum: 2 }),
    voices: Type.Optional(
      Type.Union([Type.Array(VoiceSchema, { minItems: 1, maxItems: 1000 }), Type.Literal("fetched")]),
    ),
    voice_aliases: Type.Optional(Type.Record(text(200), text(200), { maxProperties: 1000 })),
    own_voices: Type.Optional(Type.Boolean()),
    default_voice: Type.Optional(text(200)),
    voice_optional: Type.Optional(Type.Boolean()),
    max_input_characters: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
    speed: Type.Optional(
      Type.Object(
        {
          min: Type.Number({ minimum: 0.25, maximum: 1 }),
          max: Type.Number({ minimum: 1, maximum: 4 }),
        },
        strict,
      ),
    ),
    instructions: Type.Optional(Type.Boolean()),
  },
  strict,
);

const side = Type.Integer({ minimum: 1, maximum: 16_384 });
const pixels = Type.Integer({ minimum: 1, maximum: 1 << 28 });

const SizeGridSchema = Type.Object(
  {
    aspect_ratios: Type.Array(Type.Enum([...aspectRatios]), { minItems: 1, ...unique }),
    resolutions: Type.Array(Type.Enum([...resolutions]), { minItems: 1, ...unique }),
    default_resolution: Type.Enum([...resolutions]),
    multiple_of: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
    min_pixels: pixels,
    max_pixels: pixels,
    max_side: side,
    max_ratio: Type.Optional(Type.Number({ minimum: 1, maximum: 100 })),
  },
  strict,
);

const ImageSchema = Type.Object(
  {
    formats: Type.Array(Type.Enum(["png", "jpeg", "webp", "svg"]), { minItems: 1, ...unique }),
    sizes: Type.Optional(
      Type.Array(Type.String({ pattern: "^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$" }), { minItems: 1, ...unique }),
    ),
    grid: Type.Optional(SizeGridSchema),
    auto_size: Type.Optional(Type.Boolean()),
    max_n: Type.Integer({ minimum: 1, maximum: 10 }),
    qualities: Type.Optional(Type.Array(Type.Enum(["low", "medium", "high"]), { minItems: 1, ...unique })),
    backgrounds: Type.Optional(Type.Array(Type.Enum(["transparent", "opaque"]), { minItems: 1, ...unique })),
    compression: Type.Optional(Type.Boolean()),
    seed: Type.Optional(Type.Boolean()),
    max_references: Type.Optional(Type.Integer({ minimum: 1, maximum: 16 })),
    max_reference_megapixels: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    pixels_per_megapixel: Type.Optional(Type.Enum([1_000_000, 1_048_576])),
    mask: Type.Optional(Type.Boolean()),
    streaming: Type.Optional(Type.Boolean()),
    max_streamed_n: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    max_prompt_characters: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  },
  strict,
);

const modelId = Type.String({ pattern: "^[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9._-]*$", maxLength: 200 });

const ModelSchema = Type.Object(
  {
    id: modelId,
    permaslug: modelId,
    name: text(200),
    description: text(1000),
    created: Type.String({ pattern: "^20[0-9]{2}-[0-9]{2}-[0-9]{2}$" }),
    medium: Type.Enum(["speech", "image"]),
  },
  strict,
);

/** A UUID as it is written. */
export const uuidText = Type.String({ pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" });

const EndpointSchema = Type.Object(
  {
    id: Type.Optional(uuidText),
    model: modelId,
    upstream_model: text(200),
    speech: Type.Optional(SpeechSchema),
    image: Type.Optional(ImageSchema),
    passthrough: Type.Optional(Type.Array(text(100), { maxItems: 100, ...unique })),
    prices: Type.Optional(PricesSchema),
    price_source: Type.Optional(
      Type.Object(
        { page: text(500), date: Type.String({ pattern: "^20[0-9]{2}-[0-9]{2}-[0-9]{2}$" }) },
        strict,
      ),
    ),
    billed_by: Type.Optional(Type.Literal("reported_cost")),
    settings: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    cancel: Type.Optional(Type.Literal("free")),
  },
  strict,
);

const CatalogFileSchema = Type.Object(
  {
    provider: Type.Object(
      {
        slug: Type.String({ pattern: "^[a-z][a-z0-9-]*$" }),
        name: text(100),
        connection: Type.Optional(ConnectionSchema),
      },
      strict,
    ),
    models: Type.Optional(Type.Array(ModelSchema)),
    endpoints: Type.Optional(Type.Array(EndpointSchema)),
  },
  strict,
);

/** One provider's catalogue file as it is written. */
export type CatalogFile = Type.Static<typeof CatalogFileSchema>;
/** A model as a catalogue file declares it. */
export type ModelEntry = Type.Static<typeof ModelSchema>;
/** An endpoint as a catalogue file declares it. */
export type EndpointEntry = Type.Static<typeof EndpointSchema>;
/** What an endpoint can do with speech, as a catalogue file declares it. */
export type SpeechEntry = Type.Static<typeof SpeechSchema>;
/** What an endpoint can do with images, as a catalogue file declares it. */
export type ImageEntry = Type.Static<typeof ImageSchema>;
/** A price as a catalogue file declares it. */
export type PriceEntry = Type.Static<typeof PriceSchema>;

const validator = Compile(CatalogFileSchema);

/** Makes an endpoint's id of its provider and model, for good. */
const endpointNamespace = "6f0ff2e8-5a4b-4f5e-9c4c-3ad2c2b0e6a1";

/** The id of an endpoint: its own, or where it has none a UUIDv5 of its provider's slug and its model. */
export function endpointId(providerSlug: string, { id, model }: Pick<EndpointEntry, "id" | "model">): string {
  return id ?? v5(`${providerSlug} ${model}`, endpointNamespace);
}

/** What reading one file gave: its content, or what is wrong with it, each `<path in the file>: <fault>`. */
export type ParsedFile<T> =
  | { readonly file: T; readonly faults?: undefined }
  | { readonly file?: undefined; readonly faults: readonly string[] };

/** Reads the text of one catalogue file against its schema; nothing of what other files say is checked here. */
export function parseCatalogFile(yaml: string): ParsedFile<CatalogFile> {
  return parseYaml(yaml, validator);
}

/** What tells whether a value is of a schema, and if not why. */
interface Validator<T> {
  Check(value: unknown): value is T;
  Errors(value: unknown): readonly SchemaError[];
}
type SchemaError = ReturnType<typeof validator.Errors>[number];

/** Reads YAML against a schema. */
export function parseYaml<T>(yaml: string, schema: Validator<T>): ParsedFile<T> {
  const document = parseDocument(yaml);
  const broken = [...document.errors, ...document.warnings].map((fault) => firstLine(fault.message));
  if (broken.length > 0) return { faults: broken };
  const content = readDocument(document);
  if (schema.Check(content)) return { file: content };
  return { faults: schemaFaults(schema, content) };
}

/** What keeps a value from being of a schema, each `<path>: <fault>`. */
export function schemaFaults<T>(schema: Validator<T>, value: unknown): readonly string[] {
  return [...new Set(schema.Errors(value).flatMap(describe))];
}

function readDocument(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS();
  } catch {
    // Aliases that expand beyond the parser's limit; no schema accepts what is returned here.
    return undefined;
  }
}

/** What an error says; typebox reports an unknown field twice, as that field's own "boolean" error as well. */
function describe({ keyword, instancePath, params, message }: SchemaError): readonly string[] {
  const path = instancePath.slice(1).split("/").filter(Boolean);
  const unknown = (parent: readonly string[], field = "") => `${place(parent)}: unknown field ${field}`;
  switch (keyword) {
    case "boolean":
      return [unknown(path.slice(0, -1), path.at(-1))];
    case "additionalProperties":
      return params.additionalProperties.map((field) => unknown(path, field));
    case "required":
      return [`${place(path)}: ${params.requiredProperties.join(", ")} is missing`];
    case "enum":
      return [`${place(path)}: must be one of ${params.allowedValues.join(", ")}`];
    default:
      return [`${place(path)}: ${message}`];
  }
}

function place(path: readonly string[]): string {
  return path.length === 0 ? "the file" : path.join(".");
}

function firstLine(message: string): string {
  return (message.split("\n")[0] ?? message).replace(/:$/, "");
}
