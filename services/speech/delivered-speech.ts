import { codePoints } from "../../lib/generation/code-points.ts";
import type { Billable, SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { listPrice } from "../../providers/catalog/endpoint-price.ts";
import type { Delivered } from "../../providers/routing/generation-record.ts";
import type { BilledDelivery } from "../../providers/routing/reported-usage.ts";
import { AudioDuration } from "./audio-duration.ts";
import { mostCostOf } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { UsableAudio } from "./usable-audio.ts";

/** What is counted only once all audio is there. */
const knownAtTheEnd: ReadonlySet<Billable> = new Set([
  "input_text_token",
  "output_audio_token",
  "output_audio_second",
]);

interface Beginning {
  readonly endpoint: SpeechEndpoint;
  readonly sampleRateHz: number;
  readonly channels: number;
}

function billsSeconds({ prices }: SpeechEndpoint): boolean {
  return prices.some(({ billable }) => billable === "output_audio_second");
}

/** The audio of one synthesis. It is charged for the whole input once usable audio was handed to the stream. */
export class DeliveredSpeech implements Delivered<SpeechEndpoint> {
  readonly streamed = true;
  readonly #request: SpeechRequest;
  readonly #usable: UsableAudio;
  readonly #inputCharacters: bigint;
  #duration: AudioDuration | undefined;

  constructor(request: SpeechRequest) {
    this.#request = request;
    this.#usable = new UsableAudio(request.format);
    this.#inputCharacters = BigInt(codePoints(request.input));
  }

  get units() {
    return { inputCharacters: this.#inputCharacters };
  }

  /** The answer has begun; what is to be handed out has so many samples a second. */
  begins({ endpoint, sampleRateHz, channels }: Beginning): void {
    if (!billsSeconds(endpoint)) return;
    this.#duration = new AudioDuration(this.#request.format, { sampleRateHz, channels });
  }

  /** Audio was handed to the stream. */
  handedOut(bytes: Uint8Array): void {
    this.#usable.add(bytes);
    this.#duration?.add(bytes);
  }

  /** Whether what it costs at an endpoint is settled, whatever is still to come. */
  isPricedAt({ prices, billedBy }: SpeechEndpoint): boolean {
    if (billedBy !== undefined) return false;
    return this.#usable.usable && prices.every(({ billable }) => !knownAtTheEnd.has(billable));
  }

  billedAt(endpoint: SpeechEndpoint): BilledDelivery | undefined {
    if (!this.#usable.usable) return undefined;
    const { prices } = endpoint;
    const bills = (kind: string) => prices.some(({ billable }) => billable === kind);
    return {
      inputByTokens: bills("input_text_token"),
      outputByTokens: bills("output_audio_token"),
      byReportedCost: endpoint.billedBy === "reported_cost",
      mostNanoUsd: mostCostOf(endpoint, this.#request),
      priceOf: ({ prompt, completion }) =>
        listPrice(prices, {
          input_character: this.#inputCharacters,
          input_utf8_byte: BigInt(Buffer.byteLength(this.#request.input)),
          output_audio_second: BigInt(this.#duration?.milliseconds ?? 0),
          request: 1n,
          input_text_token: BigInt(prompt),
          output_audio_token: BigInt(completion),
        }),
    };
  }
}
