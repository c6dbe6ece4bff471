import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ProviderTestVerdict as Verdict } from "../../gen/media/routing/v1/provider_test_report_pb.ts";
import { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import type { Issuer } from "../../lib/identity/issuer.ts";
import { createLocalTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { createProviders, type ProviderSet } from "../../providers/registry.ts";
import { FakePaidRequests } from "../../test/fakes/fake-paid-requests.ts";
import { catalogOf, FakeSpeaker, fakeProviders, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { noResultFetches } from "../../test/fakes/no-results.ts";
import { unlimited } from "../../test/fakes/unlimited.ts";
import { createSpeechService } from "./speech-service.ts";

const longMs = 60_000;

interface Scene {
  readonly providers: ProviderSet;
  readonly endpoints?: readonly SpeechEndpoint[];
  readonly firstByteTimeoutMs?: number;
  readonly issuer?: Issuer;
  /** What writing into the audit throws. */
  readonly away?: Error;
}

function serve({ providers, endpoints = [speechEndpoint()], issuer = "operator", ...scene }: Scene) {
  const recorded: unknown[] = [];
  const paid = new FakePaidRequests();
  const service = createSpeechService({
    catalog: catalogOf(...endpoints),
    providers,
    limits: {
      firstByteTimeoutMs: scene.firstByteTimeoutMs ?? longMs,
      idleTimeoutMs: longMs,
      timeoutMs: longMs,
    },
    paid,
    limiter: unlimited,
    async recordProviderTest(test) {
      if (scene.away !== undefined) throw scene.away;
      recorded.push(test);
    },
    authenticateKey: () => Promise.reject(new DomainError(ErrorReason.KEY_UNKNOWN, "no such key")),
    verifyToken: async () => ({ issuer, subject: "ada", principal: undefined }),
    log: silentLog,
  });
  const bearer: Interceptor = (next) => (request) => {
    request.header.set("authorization", "Bearer a.b.c");
    return next(request);
  };
  const transport = createLocalTransport(service.routes, {
    interceptors: [bearer],
    defaultTimeoutMs: longMs,
  });
  const client = createRpcClient(SpeechAdminService, transport);
  const run = async (more: { operatorKey?: number; voice?: string } = {}) =>
    (await client.testSpeechProvider({ providerSlug: "acme", ...more })).report;
  return { client, run, recorded, paid };
}

const price = (nanoUsdPerMillion: bigint): SpeechEndpoint["prices"] => [
  { billable: "input_character", nanoUsdPerMillion, mostPerInputCharacter: undefined },
];

test("the cheapest endpoint of the provider speaks two letters, once they stand in the audit", async () => {
  const acme = new FakeSpeaker({ audio: [Buffer.from("au"), Buffer.from("dio")] });
  const endpoints = [
    speechEndpoint({ id: "dear", prices: price(9_000_000_000n) }),
    speechEndpoint({ id: "cheap", prices: price(5_000_000_000n), upstreamModel: "voice-2" }),
    speechEndpoint({ id: "other", providerSlug: "zenith", prices: price(0n) }),
  ];
  const { run, recorded, paid } = serve({ providers: fakeProviders({ acme, zenith: acme }), endpoints });
  const report = await run();
  expect(report).toMatchObject({
    verdict: Verdict.OK,
    endpointId: "cheap",
    model: "acme/voice",
    upstreamModel: "voice-2",
    mostCostNanoUsd: 10_000n,
    operatorKeys: 1,
  });
  const [first = NaN, total = NaN] = [report?.firstOutput, report?.total].map(
    (each) => each && durationMs(each),
  );
  expect(first).toBeLessThanOrEqual(total);
  expect(acme.heard.map(({ call }) => [call.input, call.voice, call.upstreamModel])).toEqual([
    ["Hi", "anna", "voice-2"],
  ]);
  expect(acme.heard[0]?.pulled).toBe(2);
  const note = "speech: acme/voice, at most 0.00001 USD there";
  expect(recorded).toEqual([{ operator: "ada", providerSlug: "acme", note }]);
  expect([paid.reservations, paid.events]).toEqual([[], []]);
});

test("nothing is sent that the audit does not have", async () => {
  const acme = new FakeSpeaker();
  const away = new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "account is away");
  const { run } = serve({ providers: fakeProviders({ acme }), away });
  await expect(run()).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  expect(acme.heard).toEqual([]);
});

test.for<Issuer>(["gateway", "account", "speech"])("nobody but operators may ask: %s", async (issuer) => {
  const acme = new FakeSpeaker();
  const { run } = serve({ providers: fakeProviders({ acme }), issuer });
  await expect(run()).rejects.toMatchObject({ reason: ErrorReason.CALLER_NOT_ALLOWED });
  expect(acme.heard).toEqual([]);
});

test.for<[string, Partial<Scene>, { operatorKey?: number; voice?: string }, Verdict]>([
  ["is not offered", { endpoints: [speechEndpoint({ providerSlug: "zenith" })] }, {}, Verdict.NOT_OFFERED],
  ["is off", { providers: fakeProviders({ acme: undefined }) }, {}, Verdict.OFF],
  ["has no such key", {}, { operatorKey: 2 }, Verdict.OFF],
  [
    "may cost too much",
    { endpoints: [speechEndpoint({ prices: price(250_000_000_000_001n) })] },
    {},
    Verdict.TOO_DEAR,
  ],
  [
    "has no known voice",
    { endpoints: [speechEndpoint({ speech: { defaultVoice: undefined } })] },
    {},
    Verdict.VOICE_NEEDED,
  ],
])("nothing is sent where a provider %s", async ([, scene, asked, verdict]) => {
  const acme = new FakeSpeaker();
  const { run, recorded } = serve({ providers: fakeProviders({ acme }), ...scene });
  expect((await run(asked))?.verdict).toBe(verdict);
  expect([acme.heard, recorded]).toEqual([[], []]);
});

test("a voice may be named", async () => {
  const acme = new FakeSpeaker();
  const endpoints = [speechEndpoint({ speech: { defaultVoice: undefined } })];
  const { run } = serve({ providers: fakeProviders({ acme }), endpoints });
  expect((await run({ voice: "bo" }))?.verdict).toBe(Verdict.OK);
  expect(acme.heard[0]?.call.voice).toBe("bo");
});

test("one test runs at a time, and the next may follow", async () => {
  const gate = Promise.withResolvers<undefined>();
  const acme = new FakeSpeaker({ before: [gate.promise], audio: [Buffer.from("audio")] });
  const { run } = serve({ providers: fakeProviders({ acme }) });
  const running = run();
  await expect(run()).rejects.toMatchObject({ reason: ErrorReason.RATE_LIMITED });
  gate.resolve(undefined);
  expect((await running)?.verdict).toBe(Verdict.OK);
  expect((await run())?.verdict).toBe(Verdict.OK);
});

test.for([
  ["takes no notice of its end", new Promise<undefined>(() => undefined)],
  ["falls silent", "silence"],
] as const)("a test is over after its time, also where the provider %s", async ([, step]) => {
  const acme = new FakeSpeaker({ audio: [Buffer.from("audio"), step] });
  const { run } = serve({ providers: fakeProviders({ acme }), firstByteTimeoutMs: 20 });
  const report = await run();
  expect(report?.verdict).toBe(Verdict.TIMED_OUT);
  expect(report?.firstOutput).toBeDefined();
  expect(acme.heard[0]?.signal.aborted).toBe(true);
});

test("an answer without audio makes no sense", async () => {
  const { run } = serve({ providers: fakeProviders({ acme: new FakeSpeaker({ audio: [] }) }) });
  expect((await run())?.verdict).toBe(Verdict.BAD_ANSWER);
});

test("a caller who leaves ends the call", async () => {
  const acme = new FakeSpeaker({ before: ["silence"] });
  const { client } = serve({ providers: fakeProviders({ acme }) });
  const leaving = new AbortController();
  const left = client.testSpeechProvider({ providerSlug: "acme" }, { signal: leaving.signal });
  await expect.poll(() => acme.heard.length).toBe(1);
  leaving.abort();
  await expect(left).rejects.toThrow();
  await expect.poll(() => acme.heard[0]?.signal.aborted).toBe(true);
});

test("nobody answers where nobody listens", async () => {
  const http = createOutboundHttp();
  const environment = { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: "http://127.0.0.1:1" };
  const providers = createProviders({ environment, http, results: noResultFetches, log: silentLog });
  const { client } = serve({ providers, endpoints: [speechEndpoint({ providerSlug: "openai" })] });
  const { report } = await client.testSpeechProvider({ providerSlug: "openai" });
  expect(report?.verdict).toBe(Verdict.UNREACHABLE);
  await http.close();
});
