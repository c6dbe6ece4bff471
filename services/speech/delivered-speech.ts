import { codePoints } from "../../lib/generation/code-points.ts";
import type { SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { listPrice } from "../../providers/catalog/endpoint-price.ts";
import type { Delivered } from "../../providers/routing/generation-record.ts";
import type { BilledDelivery } from "../../providers/routing/reported-usage.ts";
import { mostCostOf } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { UsableAudio } from "./usable-audio.ts";

/** The audio of one synthesis. It is charged for the whole input once usable audio was handed to the stream. */
export class DeliveredSpeech implements Delivered<SpeechEndpoint> {
  readonly streamed = true;
  readonly #request: SpeechRequest;
  readonly #usable: UsableAudio;
  readonly #inputCharacters: bigint;

  constructor(request: SpeechRequest) {
    this.#request = request;
    this.#usable = new UsableAudio(request.format);
    this.#inputCharacters = BigInt(codePoints(request.input));
  }

  get units() {
    return { inputCharacters: this.#inputCharacters };
  }

  /** Audio was handed to the stream. */
  handedOut(bytes: Uint8Array): void {
    this.#usable.add(bytes);
  }

  /** Whether what it costs at an endpoint is settled, whatever is still to come. */
  isPricedAt({ prices }: SpeechEndpoint): boolean {
    return this.#usable.usable && !prices.some(({ billable }) => billable.endsWith("_token"));
  }

  billedAt(endpoint: SpeechEndpoint): BilledDelivery | undefined {
    if (!this.#usable.usable) return undefined;
    const { prices } = endpoint;
    const bills = (kind: string) => prices.some(({ billable }) => billable === kind);
    return {
      inputByTokens: bills("input_text_token"),
      outputByTokens: bills("output_audio_token"),
      mostNanoUsd: mostCostOf(endpoint, this.#request),
      priceOf: ({ prompt, completion }) =>
        listPrice(prices, {
          input_character: this.#inputCharacters,
          request: 1n,
          input_text_token: BigInt(prompt),
          output_audio_token: BigInt(completion),
        }),
    };
  }
}
