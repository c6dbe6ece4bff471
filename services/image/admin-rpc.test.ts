import type { Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import { ProviderTestVerdict as Verdict } from "../../gen/media/routing/v1/provider_test_report_pb.ts";
import { createLocalTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import {
  anySizes,
  FakePainter,
  fakeImageProviders,
  imageCatalogOf,
  imageEndpoint,
} from "../../test/fakes/fake-image.ts";
import { FakePaidRequests } from "../../test/fakes/fake-paid-requests.ts";
import { unlimited } from "../../test/fakes/unlimited.ts";
import { createImageService } from "./image-service.ts";

const mebibyte = 1 << 20;

function serve(painter: FakePainter, ...endpoints: ImageEndpoint[]) {
  const recorded: unknown[] = [];
  const paid = new FakePaidRequests();
  const service = createImageService({
    catalog: imageCatalogOf(...endpoints),
    providers: fakeImageProviders({ acme: painter }),
    limits: { timeoutMs: 60_000 },
    paid,
    limiter: unlimited,
    recordProviderTest: async (test) => void recorded.push(test),
    maxBodyBytes: mebibyte,
    maxInflightReferenceBytes: mebibyte,
    fetchReference: { fetch: () => Promise.reject(new Error("nothing is fetched here")) },
    authenticateKey: () => Promise.reject(new Error("nobody has a key")),
    verifyToken: async () => ({ issuer: "operator", subject: "ada", principal: undefined }),
    log: silentLog,
  });
  const bearer: Interceptor = (next) => (request) => {
    request.header.set("authorization", "Bearer a.b.c");
    return next(request);
  };
  const transport = createLocalTransport(service.routes, { interceptors: [bearer] });
  const client = createRpcClient(ImageAdminService, transport);
  const run = async () => (await client.testImageProvider({ providerSlug: "acme" })).report;
  return { run, recorded, paid };
}

const cents = (count: bigint): ImageEndpoint["prices"] => [
  {
    billable: "output_image",
    unit: "image",
    variant: "",
    nanoUsdPerMillion: count * 10_000_000_000_000n,
    mostTokensEach: 0n,
  },
];

test.for<[string, ImageEndpoint["image"]["sizes"], object]>([
  ["of a grid", anySizes, { width: 512, height: 512 }],
  [
    "of a list",
    {
      kind: "list",
      sizes: [
        { width: 1024, height: 1024 },
        { width: 320, height: 200 },
        { width: 512, height: 512 },
      ],
    },
    { width: 320, height: 200 },
  ],
])(
  "the cheapest endpoint draws the smallest image %s, once it stands in the audit",
  async ([, sizes, size]) => {
    const painter = new FakePainter();
    const { run, recorded, paid } = serve(
      painter,
      imageEndpoint({ id: "dear", prices: cents(2n) }),
      imageEndpoint({ id: "cheap", prices: cents(1n), image: { sizes } }),
    );
    expect(await run()).toMatchObject({
      verdict: Verdict.OK,
      endpointId: "cheap",
      mostCostNanoUsd: 10_000_000n,
    });
    expect(painter.seen.map(({ call }) => call)).toMatchObject([
      { size, n: 1, quality: "low", stream: false },
    ]);
    expect(recorded).toEqual([
      { operator: "ada", providerSlug: "acme", note: "image: acme/brush, at most 0.01 USD there" },
    ]);
    expect([paid.reservations, paid.events]).toEqual([[], []]);
  },
);

test("an answer without an image makes no sense, and one that costs too much is not asked for", async () => {
  const empty = new FakePainter({ output: [] });
  expect((await serve(empty, imageEndpoint({ prices: cents(50n) })).run())?.verdict).toBe(Verdict.BAD_ANSWER);
  const painter = new FakePainter();
  const { run, recorded } = serve(painter, imageEndpoint({ prices: cents(51n) }));
  expect((await run())?.verdict).toBe(Verdict.TOO_DEAR);
  expect([painter.seen, recorded]).toEqual([[], []]);
});
