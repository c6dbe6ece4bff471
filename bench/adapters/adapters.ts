/**
 * First byte and CPU of this process for an answer through each kind of adapter, beside the first of its medium: 80 KiB of
 * audio that the upstream writes at once in pieces of 4 KiB, an image of 1 MiB. Upstreams run in processes of their own;
 * services, keys and money are left out. `node bench/adapters/adapters.ts` (`--requests 1000 --rounds 3 --concurrency 8`)
 */
import { parseArgs } from "node:util";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import type { AttemptContext, Provider } from "../../providers/contract.ts";
import { createResultFetches } from "../../providers/upstream/network/fetch-result.ts";
import { startChild } from "../../test/support/processes/child.ts";
import { quantileOf } from "../load.ts";
import { type AdapterKind, adapterKinds, apiKey } from "./kinds.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    rounds: { type: "string", default: "3" },
    concurrency: { type: "string", default: "8" },
  },
});
const [speeches, rounds, concurrency] = [values.requests, values.rounds, values.concurrency].map(Number) as [
  number,
  number,
  number,
];
/** Images are so much more work that a tenth of the requests tells as much. */
const imageShare = 0.1;

interface Round {
  readonly cpuMs: number;
  readonly firstMs: number;
}

async function ask(provider: Provider, kind: AdapterKind, baseUrl: string): Promise<number> {
  const { signal } = new AbortController();
  const context: AttemptContext = { signal, connection: { baseUrl, apiKey }, onSent: () => undefined };
  const begunMs = performance.now();
  let firstMs: number | undefined;
  const output =
    "speech" in kind
      ? (await provider.speech?.synthesize(kind.speech, context))?.audio
      : (await provider.image?.generate(kind.image, context))?.output;
  for await (const _ of output ?? []) firstMs ??= performance.now() - begunMs;
  return firstMs ?? Number.NaN;
}

async function measure(
  provider: Provider,
  kind: AdapterKind,
  baseUrl: string,
  count: number,
): Promise<Round> {
  const first: number[] = [];
  let begun = 0;
  const worker = async () => {
    while (begun++ < count) first.push(await ask(provider, kind, baseUrl));
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: concurrency }, worker));
  const { user, system } = process.cpuUsage(before);
  first.sort((one, other) => one - other);
  return { cpuMs: (user + system) / 1000 / count, firstMs: quantileOf(first, 0.5) };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

const http = createOutboundHttp();
const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));
const upstreams = adapterKinds.map(({ name }) => startChild("bench/adapters/upstream.ts", { args: [name] }));
const measured = adapterKinds.map((): Round[] => []);
try {
  const parties = await Promise.all(
    adapterKinds.map(async (kind, index) => {
      const baseUrl = (await upstreams[index]?.line((line) => line.startsWith("http://"))) ?? "";
      return {
        kind,
        baseUrl,
        provider: await kind.manifest.create({ http, fetchResult: results.of(baseUrl) }),
      };
    }),
  );
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, { kind, baseUrl, provider }] of parties.entries()) {
      const count = Math.max(concurrency, Math.round(speeches * ("speech" in kind ? 1 : imageShare)));
      const result = await measure(provider, kind, baseUrl, count);
      // The first round warms up.
      if (round >= 0) measured[index]?.push(result);
    }
  }
} finally {
  await Promise.all([http.close(), results.close(), ...upstreams.map((upstream) => upstream.stop())]);
}

const cpuOf = (index: number) => median((measured[index] ?? []).map(({ cpuMs }) => cpuMs));
const isSpeech = (kind: AdapterKind) => "speech" in kind;
for (const [index, kind] of adapterKinds.entries()) {
  const cpuMs = cpuOf(index);
  const times = cpuMs / cpuOf(adapterKinds.findIndex((other) => isSpeech(other) === isSpeech(kind)));
  const firstMs = median((measured[index] ?? []).map((round) => round.firstMs));
  console.log(
    `${kind.name.padEnd(28)} CPU ${cpuMs.toFixed(2)} ms (×${times.toFixed(1)}), first byte p50 ${firstMs.toFixed(1)} ms`,
  );
}
