import Type, { type Static } from "typebox";
import { Create } from "typebox/value";

const unknown = (description: string) => Type.Null({ description });

const untoldFields = {
  privacy_policy_url: unknown("Ask the provider."),
  terms_of_service_url: unknown("Ask the provider."),
  status_page_url: unknown("Ask the provider."),
  headquarters: unknown("Not told here."),
  datacenters: unknown("Not told here."),
};

const untold = Create(Type.Object(untoldFields));

/** The answer of GET /providers. */
export const providerListSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      slug: Type.String({ description: "What `provider.only` and its like take." }),
      name: Type.String(),
      ...untoldFields,
    }),
    { description: "Ordered by slug." },
  ),
});

interface ServedModel {
  readonly endpoints: readonly { readonly providerSlug: string; readonly providerName: string }[];
}

/** Who serves some models, each provider once. */
export function toProviderList(models: readonly ServedModel[]): Static<typeof providerListSchema> {
  const names = new Map(
    models.flatMap(({ endpoints }) =>
      endpoints.map(({ providerSlug, providerName }) => [providerSlug, providerName] as const),
    ),
  );
  const slugs = [...names].sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    data: slugs.map(([slug, name]) => ({ slug, name, ...untold })),
  };
}
