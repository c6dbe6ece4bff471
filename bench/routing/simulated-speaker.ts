import {
  type AttemptContext,
  ProviderError,
  type SpeechAdapter,
  type SpeechAnswer,
  type SpeechCall,
} from "../../providers/contract.ts";
import { seededRandom } from "../../test/fakes/seeded-random.ts";
import { fateAt, type Vendor } from "./day.ts";
import type { SimulatedTime } from "./simulated-time.ts";

const samples = new Uint8Array(2);
const quickMs = 60;
const restMs = 400;

/** A vendor as its adapter shows it. The input begins with the number of the request, by which its fate is drawn. */
export class SimulatedSpeaker implements SpeechAdapter {
  readonly #vendor: Vendor;
  readonly #time: SimulatedTime;
  readonly #startMs: number;

  constructor(vendor: Vendor, time: SimulatedTime) {
    this.#vendor = vendor;
    this.#time = time;
    this.#startMs = time.nowMs();
  }

  async synthesize({ input }: SpeechCall, { signal, onSent }: AttemptContext): Promise<SpeechAnswer> {
    const atMs = this.#time.nowMs() - this.#startMs;
    const seed = Number.parseInt(input, 10) * 31 + this.#vendor.slug.length + Math.floor(atMs);
    const { trouble, firstAudioMs } = fateAt(this.#vendor, atMs, seededRandom(seed));
    if (trouble === "unreachable") throw new ProviderError("network", "no connection");
    onSent();
    await this.#time.wait(trouble === undefined || trouble === "breaking" ? firstAudioMs : quickMs, signal);
    if (trouble === "silent") await this.#time.wait(Number.MAX_SAFE_INTEGER, signal);
    if (trouble === "failing") throw new ProviderError("upstream", "failed", { status: 500 });
    if (trouble === "overloaded") throw new ProviderError("overloaded", "busy", { status: 503 });
    const audio = this.#speak(trouble === "breaking", signal);
    return { format: "pcm", sampleRateHz: 24_000, channels: 1, audio, report: () => undefined };
  }

  async *#speak(breaks: boolean, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield samples;
    await this.#time.wait(restMs, signal);
    if (breaks) throw new ProviderError("network", "broke off");
    yield samples;
  }
}
