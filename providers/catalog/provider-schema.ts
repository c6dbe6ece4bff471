/** What a catalogue file may say of a provider that is not built in: how to reach it and what its answers are like. */
import { Type } from "typebox";
import { Compile } from "typebox/compile";

const strict = { additionalProperties: false };
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const headerName = Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" });
const path = Type.Optional(Type.String({ pattern: "^/[^\\s?#]*$", maxLength: 500 }));
const visible = Type.String({ pattern: "^[\\x20-\\x7e]+$", maxLength: 2000 });

const SettingsSchema = Type.Object(
  {
    stream: Type.Optional(Type.Enum(["raw", "sse", "json"])),
    audio_field: Type.Optional(text(100)),
    format_names: Type.Optional(
      Type.Object(
        { mp3: Type.Optional(text(100)), pcm: Type.Optional(text(100)), wav: Type.Optional(text(100)) },
        strict,
      ),
    ),
    body: Type.Optional(Type.Record(text(100), Type.Unknown())),
    usage_headers: Type.Optional(
      Type.Object(
        {
          input_tokens: Type.Optional(headerName),
          output_tokens: Type.Optional(headerName),
          characters: Type.Optional(headerName),
          cost_usd: Type.Optional(headerName),
        },
        strict,
      ),
    ),
    response_format: Type.Optional(text(100)),
    size_as: Type.Optional(Type.Enum(["pixels", "ratio", "none"])),
    max_response_mib: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
  },
  strict,
);

/** Settings of the dialect as they are written: what an endpoint's answers are like. */
export type SettingsEntry = Type.Static<typeof SettingsSchema>;

/** Tells whether an endpoint's settings are the dialect's. */
export const settingsValidator = Compile(SettingsSchema);

/** How a provider is reached that an operator describes. */
export const ConnectionSchema = Type.Object(
  {
    dialect: Type.Enum(["openai"]),
    base_url: Type.String({ pattern: "^https?://[^\\s?#@]+$", maxLength: 2000 }),
    auth: Type.Optional(
      Type.Union([
        Type.Enum(["bearer", "basic", "none"]),
        Type.Object({ header: headerName, scheme: Type.Optional(visible) }, strict),
      ]),
    ),
    key: Type.Optional(Type.Enum(["required", "optional"])),
    headers: Type.Optional(Type.Record(headerName, visible, { maxProperties: 50, ...strict })),
    query: Type.Optional(Type.Record(text(100), text(1000), { maxProperties: 50 })),
    paths: Type.Optional(Type.Object({ speech: path, generations: path, edits: path, voices: path }, strict)),
    edits: Type.Optional(Type.Enum(["multipart", "image", "image_url", "input_references"])),
    settings: Type.Optional(SettingsSchema),
    private_address: Type.Optional(Type.Boolean()),
    ca_file: Type.Optional(text(1000)),
  },
  strict,
);

/** Such a description as it is written. */
export type ConnectionEntry = Type.Static<typeof ConnectionSchema>;
