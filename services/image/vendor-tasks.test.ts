import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { createProviders, type ProviderSet } from "../../providers/registry.ts";
import { FakePaidRequests, failureOf, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { imageDependencies, imageRequest } from "../../test/fakes/image-scene.ts";
import { type FluxUpstream, startFluxUpstream } from "../../test/upstreams/black-forest-labs.ts";
import { generate } from "./generate.ts";

const results = {
  of: () => async (request: { readonly url: string }) =>
    new Uint8Array(await (await fetch(request.url)).arrayBuffer()),
};
let upstream: FluxUpstream;
let http: OutboundHttp;
let providers: ProviderSet;
let paid: FakePaidRequests;

beforeAll(async () => {
  upstream = await startFluxUpstream();
  http = createOutboundHttp();
  const environment = {
    BLACK_FOREST_LABS_API_KEY: "test-key",
    BLACK_FOREST_LABS_BASE_URL: `${upstream.baseUrl}/v1`,
  };
  providers = createProviders({ environment, http, results, log: silentLog });
});
afterAll(async () => {
  await providers.close();
  await Promise.all([http.close(), upstream.close()]);
});
beforeEach(() => {
  upstream.requests.length = 0;
  paid = new FakePaidRequests();
});

/** A generation by the catalogue, the registry and the adapter as they are. */
async function draw(signal = new AbortController().signal, pixels = { width: 1024, height: 1024 }) {
  const directories = [builtInCatalogDirectory];
  const catalog = await loadCatalog({ directories, providerSlugs: providers.slugs });
  const request = imageRequest({
    model: "black-forest-labs/flux-2-pro",
    size: { aspectRatio: undefined, resolution: undefined, pixels },
  });
  return generate(
    request,
    someAttribution,
    imageDependencies({}, { catalog, providers, paid }),
    signal,
    silentLog,
  );
}

test("a task is held for and charged by its megapixels, and what the vendor bills is kept beside it", async () => {
  upstream.next({ cost: 4.5, finalCost: 3 });
  await Array.fromAsync(await draw());
  expect(paid.reservations[0]).toMatchObject({ amountNanoUsd: 30_000_000n });
  expect(paid.event()).toMatchObject({
    outcome: Outcome.SUCCEEDED,
    costNanoUsd: 30_000_000n,
    providerReport: { costNanoUsd: 30_000_000n },
  });
  await Array.fromAsync(await draw(undefined, { width: 2048, height: 2048 }));
  expect(paid.events.at(-1)).toMatchObject({ costNanoUsd: 75_000_000n });
});

test("a moderated task is a refusal by policy, and costs nothing", async () => {
  upstream.next({ states: ["Pending", "Request Moderated"] });
  const frames = await draw();
  expect(await failureOf(frames)).toBe(ErrorReason.CONTENT_POLICY);
  expect(paid.event()).toMatchObject({ outcome: Outcome.FAILED, costNanoUsd: 0n });
});

test("a caller who leaves while a task is asked after is charged, and the task is fetched to its end", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  upstream.next({
    beforeAnswer: () => {
      asked.resolve();
      return answer.promise;
    },
  });
  const caller = new AbortController();
  const frames = await draw(caller.signal);
  const taken = frames.next().catch(() => undefined);
  await asked.promise;
  caller.abort();
  answer.resolve();
  await taken;
  await frames.ended;
  expect(paid.event()).toMatchObject({
    cancelled: true,
    outcome: Outcome.SUCCEEDED,
    costNanoUsd: 30_000_000n,
  });
  expect(upstream.requests.at(-1)).toMatchObject({ fate: "finished" });
  expect(upstream.requests.at(-1)?.path).toMatch(/^\/delivery\//);
});
