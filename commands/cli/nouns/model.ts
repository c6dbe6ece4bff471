import type { ImageModel } from "../../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import type { SpeechModel } from "../../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { formatUsd } from "../../../lib/money/nano-usd.ts";
import type { CommandOption, Input, Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { CommandFailure } from "../failure.ts";
import type { Fields } from "../output.ts";

/** The media, by what commands call them. */
export const media = { speech: "speech", image: "image" } as const;

/** The option that names the medium. */
export const mediumOption: CommandOption = {
  name: "medium",
  value: "medium",
  help: "speech or image; both unless given",
};

/** What can be asked for. */
export const model: Noun = {
  name: "model",
  alias: "models",
  summary: "models that can be used now",
  verbs: [
    {
      name: "list",
      summary: "models of the providers that are on",
      options: [mediumOption],
      async run(input, cli) {
        const found = await listModels(input, cli);
        return { columns: ["model", "medium", "name", "providers", "price"], rows: found.map(modelFields) };
      },
    },
    {
      name: "show",
      summary: "one model with who offers it",
      positionals: ["model"],
      async run(input, cli) {
        const id = input.required("model");
        const found = (await listModels(input, cli)).find((known) => known.model.id === id);
        if (found === undefined) {
          throw new CommandFailure(
            "notFound",
            `no model ${id} can be used now; model list shows those that can`,
          );
        }
        return { fields: detailFields(found) };
      },
    },
  ],
};

type Found =
  | { readonly medium: "speech"; readonly model: SpeechModel }
  | { readonly medium: "image"; readonly model: ImageModel };

async function listModels(input: Input, cli: Cli): Promise<Found[]> {
  const asked = input.word("medium", media);
  const found: Found[] = [];
  if (asked !== "image") {
    const { models } = await (await cli.client(SpeechService, "speech")).listSpeechModels({});
    found.push(...models.map((model): Found => ({ medium: "speech", model })));
  }
  if (asked !== "speech") {
    const { models } = await (await cli.client(ImageService, "image")).listImageModels({});
    found.push(...models.map((model): Found => ({ medium: "image", model })));
  }
  return found;
}

function modelFields({ medium, model }: Found): Fields {
  return {
    model: model.id,
    medium,
    name: model.name,
    providers: [...new Set(model.endpoints.map(({ providerSlug }) => providerSlug))],
    price: pricesOf(model.endpoints[0]),
  };
}

function detailFields(found: Found): Fields {
  const { model } = found;
  const { name, description, permaslug } = model;
  const speech = found.medium === "speech" ? found.model : undefined;
  return {
    model: model.id,
    medium: found.medium,
    name,
    description,
    permaslug,
    voices: speech?.voices.map(({ id }) => id),
    default_voice: speech?.defaultVoice || undefined,
    longest_input_characters: speech?.endpoints[0]?.maxInputCharacters,
    endpoints: model.endpoints.map(
      (endpoint) => `${endpoint.providerSlug} ${endpoint.endpointId}: ${pricesOf(endpoint).join(" + ")}`,
    ),
  };
}

type Priced = Found["model"]["endpoints"][number];

/** Such as `$15 a million input characters`. */
function pricesOf(endpoint: Priced | undefined): string[] {
  return (endpoint?.prices ?? []).map((price) => {
    const { billable, nanoUsdPerMillion } = price;
    const unit = "unit" in price && price.unit !== "" ? ` (${price.unit})` : "";
    const variant = "variant" in price && price.variant ? ` ${price.variant}` : "";
    return `$${formatUsd(nanoUsdPerMillion)} a million ${billable.replaceAll("_", " ")}${unit}${variant}`;
  });
}
