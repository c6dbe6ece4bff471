/**
 * Speech of a model with two endpoints at the same price, with both of them up and with one of them down: first byte, CPU of
 * this process and attempts a request, through the real plan, router, attempts, adapter and HTTP client to stand-ins in
 * processes of their own. Nothing is held or recorded here. `node bench/routing/one-down.ts` (`--requests 2000 --concurrency 8`)
 */
import { parseArgs } from "node:util";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { ProviderManifest } from "../../providers/contract.ts";
import { createSpeechAdapter } from "../../providers/openai-compatible/speech.ts";
import type { ProviderHttp } from "../../providers/provider-http.ts";
import { createProviders } from "../../providers/registry.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { synthesize } from "../../services/speech/synthesize.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { catalogOf, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { noResultFetches } from "../../test/fakes/no-results.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { quantileOf } from "../load.ts";
import { startUpstream } from "../targets.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "2000" },
    concurrency: { type: "string", default: "8" },
    rounds: { type: "string", default: "3" },
  },
});
const requests = Number(values.requests);
const slugs = ["first", "second"] as const;

/** What the second endpoint's variables are, by what is wrong with it. */
const states = new Map<string, (baseUrl: string) => Record<string, string>>([
  ["both up", (baseUrl) => ({ SECOND_API_KEY: "test-key", SECOND_BASE_URL: baseUrl })],
  // Nobody listens on the discard port.
  ["one unreachable", () => ({ SECOND_API_KEY: "test-key", SECOND_BASE_URL: "http://127.0.0.1:9" })],
  ["one refuses (401)", (baseUrl) => ({ SECOND_API_KEY: "a-wrong-key", SECOND_BASE_URL: baseUrl })],
]);

function manifestOf(slug: string): ProviderManifest {
  const create: ProviderManifest["create"] = async ({ http }) => ({
    speech: createSpeechAdapter({ http, path: "/v1/audio/speech" }),
  });
  return { slug, defaultBaseUrl: "http://unset.test", needsKey: true, create };
}

/** A process that has heard nothing of its endpoints yet. */
function sceneOf(environment: NodeJS.ProcessEnv, http: ProviderHttp) {
  const endpoint = { upstreamModel: "tts-1", speech: { defaultVoice: "alloy" } };
  return speechDependencies(
    {},
    {
      catalog: catalogOf(...slugs.map((providerSlug) => speechEndpoint({ providerSlug, ...endpoint }))),
      providers: createProviders({
        environment,
        http,
        results: noResultFetches,
        log: silentLog,
        manifests: slugs.map(manifestOf),
      }),
      health: new EndpointHealth({ clock }),
      random: Math.random,
    },
  );
}

async function run(scene: ReturnType<typeof sceneOf>, count: number, concurrency: number) {
  const firstByteMs: number[] = [];
  let attempts = 0;
  let sent = 0;
  const worker = async () => {
    while (sent < count) {
      sent += 1;
      const paid = new FakePaidRequests();
      const begunMs = performance.now();
      let firstMs: number | undefined;
      const { signal } = new AbortController();
      const frames = synthesize(speechRequest(), someAttribution, { ...scene, paid }, signal, silentLog);
      for await (const { kind } of frames) if (kind === "audio") firstMs ??= performance.now() - begunMs;
      firstByteMs.push(firstMs ?? Number.NaN);
      attempts += paid.event().attempts.length;
    }
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: concurrency }, worker));
  const { user, system } = process.cpuUsage(before);
  firstByteMs.sort((one, other) => one - other);
  return { firstByteMs, attempts, cpuUs: (user + system) / count };
}

const [first, second] = [await startUpstream(), await startUpstream()];
const http = createOutboundHttp();
try {
  const common = { FIRST_API_KEY: "test-key", FIRST_BASE_URL: first.baseUrl };
  await run(sceneOf({ ...common, ...states.get("both up")?.(second.baseUrl) }, http), requests, 8);
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, environmentOf] of states) {
      const scene = sceneOf({ ...common, ...environmentOf(second.baseUrl) }, http);
      const { firstByteMs, attempts, cpuUs } = await run(scene, requests, Number(values.concurrency));
      const [half, slow, slowest] = [0.5, 0.99, 1].map((share) => quantileOf(firstByteMs, share).toFixed(1));
      console.log(
        `${name.padEnd(18)} first byte p50 ${half} ms, p99 ${slow} ms, most ${slowest} ms | ` +
          `CPU ${(cpuUs / 1000).toFixed(2)} ms a request | ${attempts} attempts for ${requests} requests`,
      );
    }
  }
} finally {
  await http.close();
  await first.stop();
  await second.stop();
}
