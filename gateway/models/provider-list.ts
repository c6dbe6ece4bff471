import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import Type, { type Static } from "typebox";
import { Create } from "typebox/value";
import type { ProviderState } from "../../gen/media/routing/v1/provider_state_pb.ts";
import { nullableString, stringEnum } from "../schema/field-schemas.ts";
import { outcomesFields, seenByOneProcess, toOutcomes } from "./health.ts";

const unknown = (description: string) => Type.Null({ description });

const untoldFields = {
  privacy_policy_url: unknown("Ask the provider."),
  terms_of_service_url: unknown("Ask the provider."),
  status_page_url: unknown("Ask the provider."),
  headquarters: unknown("Not told here."),
  datacenters: unknown("Not told here."),
};

const untold = Create(Type.Object(untoldFields));

const openers = ["operator_key", "own_key", "both", "no_key_needed", "none"] as const;

/** The answer of GET /providers. */
export const providerListSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      slug: Type.String({ description: "What `provider.only` and its like take." }),
      name: Type.String(),
      is_on: Type.Boolean({ description: "Whether it serves requests of your account now." }),
      opened_by: stringEnum(openers, {
        description: "Whose key opens it: the operator's, your account's own (POST /byok), or both.",
      }),
      takes_own_keys: Type.Boolean({ description: "Whether accounts may bring their own key." }),
      switched_on_by: nullableString({
        description:
          "The environment variable by which the operator switches it on for everybody; null: there is none.",
      }),
      models: Type.Integer({
        minimum: 0,
        description: "How many it offers while it is on; 0: none of them has a price here.",
      }),
      health: Type.Object(
        {
          breaker: stringEnum(["closed", "partly_open", "open"], {
            description: "Whether its endpoints are left alone after failures in a row: none, some, all.",
          }),
          ...outcomesFields,
        },
        { description: seenByOneProcess },
      ),
      ...untoldFields,
    }),
    { description: "All that have any model, on or off, ordered by slug." },
  ),
});

type ProviderBody = Static<typeof providerListSchema>["data"][number];

/** Everybody who offers models, each provider once, from what both media say of them. */
export function toProviderList(states: readonly ProviderState[]): Static<typeof providerListSchema> {
  const bySlug = Map.groupBy(states, ({ slug }) => slug);
  const sorted = [...bySlug.values()].sort(([one], [other]) =>
    (one?.slug ?? "") < (other?.slug ?? "") ? -1 : 1,
  );
  return { data: sorted.flatMap(toProvider) };
}

function toProvider(media: readonly ProviderState[]): ProviderBody[] {
  const [first] = media;
  if (first === undefined) return [];
  const { slug, name, takesOwnKeys, switchVariable } = first;
  const opened_by = openerOf(first);
  const sum = <N extends "models" | "endpoints" | "openBreakers">(field: N) =>
    media.reduce((total, state) => total + state[field], 0);
  const open = sum("openBreakers");
  const [lastFailure] = media
    .flatMap(({ lastFailure: failure }) => failure ?? [])
    .toSorted((one, other) => timestampMs(other.at ?? never) - timestampMs(one.at ?? never));
  const outcomes = toOutcomes({
    ended: media.reduce((total, { ended }) => total + ended, 0n),
    failed: media.reduce((total, { failed }) => total + failed, 0n),
    lastFailure,
  });
  return [
    {
      slug,
      name,
      is_on: opened_by !== "none" && sum("models") > 0,
      opened_by,
      takes_own_keys: takesOwnKeys,
      switched_on_by: switchVariable === "" ? null : switchVariable,
      models: sum("models"),
      health: {
        breaker: open === 0 ? "closed" : open < sum("endpoints") ? "partly_open" : "open",
        ...outcomes,
      },
      ...untold,
    },
  ];
}

const never = timestampFromMs(0);

function openerOf({ on, takesOwnKeys, ownKey }: ProviderState): (typeof openers)[number] {
  if (on && !takesOwnKeys) return "no_key_needed";
  if (on) return ownKey ? "both" : "operator_key";
  return ownKey ? "own_key" : "none";
}
