import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { createProviders } from "../../providers/registry.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { catalogOf, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { noResultFetches } from "../../test/fakes/no-results.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { createSpeechAnswers, errorOf, sendError } from "../../test/upstreams/openai/openai-speech.ts";
import { type StandIn, startStandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";
import { synthesize } from "./synthesize.ts";

const body = { model: "voice-1", input: "Hello.", voice: "anna", response_format: "pcm" } as const;
let upstream: StandIn;
let http: OutboundHttp;
/** What the vendor answers a key with; audio unless told. */
const statusOf = new Map<string, number>();

beforeAll(async () => {
  const speak = createSpeechAnswers();
  upstream = await startStandIn(({ headers }, answer) => {
    const status = statusOf.get(headers.authorization?.replace("Bearer ", "") ?? "");
    if (status !== undefined) return sendError(answer, errorOf({ kind: "error", status }));
    return speak({ ...body, speed: 1, stream_format: "audio" }, { kind: "audio" }, answer);
  });
  http = createOutboundHttp();
});

afterEach(() => statusOf.clear());

afterAll(async () => {
  await http.close();
  await upstream.close();
});

/** A process whose operator has these keys of one vendor. */
function startProcess(apiKeys: string) {
  const logged: string[] = [];
  const log = createLog({
    name: "test",
    level: "trace",
    destination: { write: (line) => void logged.push(line) },
  });
  const environment = { OPENAI_API_KEY: apiKeys, OPENAI_BASE_URL: upstream.baseUrl };
  const providers = createProviders({ environment, http, results: noResultFetches, log });
  const paid = new FakePaidRequests();
  const catalog = catalogOf(speechEndpoint({ providerSlug: "openai" }));
  const dependencies = speechDependencies({}, { providers, paid, catalog });
  const speak = () =>
    Array.fromAsync(
      synthesize(speechRequest(), someAttribution, dependencies, new AbortController().signal, log),
    );
  return { speak, paid, logged };
}

const usedKeys = () => upstream.requests.splice(0).map(({ headers }) => headers.authorization);

test.each([
  [429, "provider_overloaded"],
  [401, "provider_credentials"],
])(
  "after %i for one of the operator's keys the next one serves, and neither shows anywhere",
  async (status, reason) => {
    statusOf.set("key-one", status);
    const { speak, paid, logged } = startProcess("key-one,key-two");
    expect((await speak()).map(({ kind }) => kind)).toContain("finished");
    expect(usedKeys()).toEqual(["Bearer key-one", "Bearer key-two"]);
    const { attempts } = paid.event();
    expect(attempts.map((attempt) => [attempt.endpointId, attempt.reason, attempt.byok])).toEqual([
      ["endpoint-of-openai", reason, false],
      ["endpoint-of-openai", "", false],
    ]);
    expect(logged.map((line) => JSON.parse(line)).filter(({ level }) => level !== "info")).toMatchObject([
      { msg: "attempt failed", reason, provider_status: status, operator_key: 1 },
    ]);
    expect(
      JSON.stringify([logged, attempts], (_, value) => (typeof value === "bigint" ? 0 : value)),
    ).not.toMatch(/key-(one|two)/);
    await speak();
    expect(usedKeys()).toEqual(["Bearer key-two"]);
  },
);

test("a failure of the vendor's own is not tried again with the next key", async () => {
  statusOf.set("key-one", 500).set("key-two", 500);
  await expect(startProcess("key-one,key-two").speak()).rejects.toMatchObject({
    attempts: [{ providerStatus: 500 }],
  });
  expect(usedKeys()).toEqual(["Bearer key-one"]);
});

test("keys that are all over their limit are all tried, and the answer is the overload", async () => {
  statusOf.set("key-one", 429).set("key-two", 429);
  const { speak } = startProcess("key-one,key-two");
  await expect(speak()).rejects.toMatchObject({
    attempts: [{ providerStatus: 429 }, { providerStatus: 429 }],
  });
  expect(usedKeys()).toEqual(["Bearer key-one", "Bearer key-two"]);
});
