import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { type SynthesizeDependencies, synthesize } from "../../services/speech/synthesize.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { catalogOf, fakeProviders, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { seededRandom } from "../../test/fakes/seeded-random.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { drawVendors, priceAt, type Vendor } from "./day.ts";
import { SimulatedSpeaker } from "./simulated-speaker.ts";
import { SimulatedTime } from "./simulated-time.ts";

/** How requests fared. */
export interface Fared {
  readonly name: string;
  readonly requests: number;
  /** The share that was answered to the end. */
  readonly availability: number;
  /** Of those that were answered, time to their first audio: half and 99 of 100 had it by then. */
  readonly medianMs: number;
  readonly slowMs: number;
  /** Of those, the time that went by with attempts that failed before: the mean, and 999 of 1000 lost no more. */
  readonly meanLostMs: number;
  readonly slowLostMs: number;
  /** What a million characters of those cost. */
  readonly usdPerMillion: number;
}

/** A simulated day. */
export interface Day {
  readonly gateway: Fared;
  /** The same requests, all to one vendor, without a gateway. */
  readonly single: readonly Fared[];
}

/** What is simulated. */
export interface DayOptions {
  readonly seed: number;
  readonly hours: number;
  /** Mean, evenly spread in chance over the day. */
  readonly requestsASecond: number;
}

const firstByteTimeoutMs = 20_000;

/** Simulates it, first through the gateway and then with each vendor alone. */
export async function simulateDay(options: DayOptions): Promise<Day> {
  const durationMs = options.hours * 3_600_000;
  const vendors = drawVendors(seededRandom(options.seed), durationMs);
  const gateway = await simulate("gateway", vendors, options, durationMs);
  const single: Fared[] = [];
  for (const vendor of vendors) single.push(await simulate(vendor.slug, [vendor], options, durationMs));
  return { gateway, single };
}

/** Where nobody rests, as for a client without a gateway. */
const neverRests = { failuresToOpen: Number.POSITIVE_INFINITY, openMs: 1 };

async function simulate(
  name: string,
  vendors: readonly Vendor[],
  { seed, requestsASecond }: DayOptions,
  durationMs: number,
): Promise<Fared> {
  const time = new SimulatedTime(Date.UTC(2030, 0, 1));
  const startMs = time.nowMs();
  const arrivals = seededRandom(seed + 1);
  const tally = new Tally();
  const limits = { firstByteTimeoutMs, idleTimeoutMs: 15_000, timeoutMs: 600_000 };
  const speakers = Object.fromEntries(
    vendors.map((vendor) => [vendor.slug, new SimulatedSpeaker(vendor, time)]),
  );
  const rest = {
    providers: fakeProviders(speakers),
    health: new EndpointHealth({ clock: time, ...(vendors.length === 1 && { breaker: neverRests }) }),
    random: seededRandom(seed + 2),
    limits,
    clock: time,
  };
  let count = 0;
  const arrive = (): void => {
    if (time.nowMs() - startMs >= durationMs) return;
    count += 1;
    const input = `${count} `.padEnd(20 + Math.floor(arrivals() * 480), "x");
    const catalog = catalogOf(...vendors.map((vendor) => endpointOf(vendor, time.nowMs() - startMs)));
    void tally.speak(input, speechDependencies({}, { ...rest, catalog }));
    time.after((-Math.log(1 - arrivals()) / requestsASecond) * 1000, arrive);
  };
  using _installed = time.install();
  time.after(0, arrive);
  await time.run();
  return tally.fared(name);
}

function endpointOf(vendor: Vendor, atMs: number) {
  const nanoUsdPerMillion = priceAt(vendor, atMs) * 1_000_000n;
  return speechEndpoint({
    providerSlug: vendor.slug,
    prices: [{ billable: "input_character", nanoUsdPerMillion, mostPerInputCharacter: undefined }],
    speech: { maxInputCharacters: 1000, formats: ["pcm"] },
  });
}

/** Counts how requests fare. */
class Tally {
  #requests = 0;
  #characters = 0;
  #costNanoUsd = 0n;
  readonly #firstAudioMs: number[] = [];
  readonly #lostMs: number[] = [];

  async speak(input: string, scene: SynthesizeDependencies): Promise<void> {
    this.#requests += 1;
    const { clock } = scene;
    const paid = new FakePaidRequests(clock);
    const dependencies = { ...scene, paid };
    const begunMs = clock.monotonicMs();
    const { signal } = new AbortController();
    const frames = synthesize(speechRequest({ input }), someAttribution, dependencies, signal, silentLog);
    let firstAudioMs: number | undefined;
    try {
      for await (const { kind } of frames)
        if (kind === "audio") firstAudioMs ??= clock.monotonicMs() - begunMs;
    } catch (thrown) {
      if (DomainError.from(thrown).reason === ErrorReason.INTERNAL) throw thrown;
      return;
    }
    if (firstAudioMs === undefined) throw new Error("answered without audio");
    const event = paid.event();
    this.#characters += input.length;
    this.#costNanoUsd += event.costNanoUsd;
    this.#firstAudioMs.push(firstAudioMs);
    this.#lostMs.push(firstAudioMs - Number(event.attempts.at(-1)?.firstByteMs ?? 0n));
  }

  fared(name: string): Fared {
    const answered = this.#firstAudioMs.length;
    return {
      name,
      requests: this.#requests,
      availability: answered / this.#requests,
      medianMs: quantile(this.#firstAudioMs, 0.5),
      slowMs: quantile(this.#firstAudioMs, 0.99),
      meanLostMs: this.#lostMs.reduce((sum, ms) => sum + ms, 0) / answered,
      slowLostMs: quantile(this.#lostMs, 0.999),
      usdPerMillion: Number(this.#costNanoUsd) / this.#characters / 1000,
    };
  }
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN;
}
