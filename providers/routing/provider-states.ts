import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  EndpointFailureSchema,
  EndpointHealthSchema,
} from "../../gen/media/routing/v1/endpoint_health_pb.ts";
import type { ProviderStateSchema } from "../../gen/media/routing/v1/provider_state_pb.ts";
import type { Endpoint, Model } from "../catalog/catalog.ts";
import type { EndpointHealth, LastFailure } from "./endpoint-health.ts";
import { latest, type SeenHealth, seenHealth, sum } from "./seen-health.ts";

/** A model and who offers it. */
type OfferedModel = Pick<Model, "id"> & {
  readonly endpoints: readonly Pick<Endpoint, "id" | "providerSlug" | "providerName">[];
};

interface StateSources {
  /** Endpoints that serve nobody for want of a price; who has no others offers no model. */
  readonly unpriced: readonly Pick<Endpoint, "providerSlug" | "providerName">[];
  /** A ProviderSet. */
  readonly providers: {
    operatorKeys(slug: string): number;
    takesOwnKeys(slug: string): boolean;
    switchVariable(slug: string): string | undefined;
  };
  readonly health: EndpointHealth;
  /** The own keys of the account that asks, at some providers. */
  ownKeys(slugs: readonly string[]): Promise<ReadonlyMap<string, unknown>>;
}

/** How everybody stands who offers one of these models, or would, on or off, ordered by slug. Throws what `ownKeys` throws. */
export async function providerStates(
  models: readonly OfferedModel[],
  { providers, health, ownKeys, unpriced }: StateSources,
): Promise<MessageInitShape<typeof ProviderStateSchema>[]> {
  const all = models.flatMap(({ endpoints }) => endpoints);
  const names = new Map(
    [...unpriced, ...all].map(({ providerSlug, providerName }) => [providerSlug, providerName]),
  );
  const slugs = [...names.keys()].sort();
  const own = await ownKeys(slugs.filter((slug) => providers.takesOwnKeys(slug)));
  return slugs.map((slug) => {
    const isHere = (endpoint: { readonly providerSlug: string }) => endpoint.providerSlug === slug;
    const endpoints = all.filter(isHere);
    const seen = endpoints.map((endpoint) => seenHealth(endpoint, { health, providers }));
    return {
      slug,
      name: names.get(slug) ?? slug,
      on: providers.operatorKeys(slug) > 0,
      takesOwnKeys: providers.takesOwnKeys(slug),
      ownKey: own.has(slug),
      switchVariable: providers.switchVariable(slug) ?? "",
      models: models.filter((model) => model.endpoints.some(isHere)).length,
      endpoints: endpoints.length,
      openBreakers: seen.filter(({ breakerOpen }) => breakerOpen).length,
      ended: BigInt(sum(seen.map(({ ended }) => ended))),
      failed: BigInt(sum(seen.map(({ failed }) => failed))),
      ...toProtoFailure(latest(seen.map(({ lastFailure }) => lastFailure))),
    };
  });
}

/** What was seen of an endpoint, as it travels. */
export function toProtoHealth({
  ended,
  failed,
  lastFailure,
  ...rest
}: SeenHealth): MessageInitShape<typeof EndpointHealthSchema> {
  return { ...rest, ended: BigInt(ended), failed: BigInt(failed), ...toProtoFailure(lastFailure) };
}

function toProtoFailure(failure: LastFailure | undefined): {
  lastFailure?: MessageInitShape<typeof EndpointFailureSchema>;
} {
  return failure === undefined
    ? {}
    : { lastFailure: { kind: failure.kind, at: timestampFromMs(failure.atMs) } };
}
