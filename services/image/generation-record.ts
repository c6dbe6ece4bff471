import sharp from "sharp";
import type { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { PaidRequestEnd, PaidRequests } from "../../lib/generation/paid-request.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Span } from "../../lib/runtime/span.ts";
import { type AttemptRecord, endAttempt } from "../../providers/attempt.ts";
import { toProtoAttempt, toProtoTokens } from "../../providers/attempt-event.ts";
import { AttemptSpans } from "../../providers/attempt-span.ts";
import type { Candidate } from "../../providers/candidate.ts";
import type { ImageEndpoint } from "../../providers/catalog.ts";
import type { PixelSize } from "../../providers/catalog-image.ts";
import type { TokenUsage } from "../../providers/contract.ts";
import { imageListPrice, mostImagesCanCost } from "../../providers/endpoint-price.ts";
import { chargeFor } from "../../providers/most-to-hold.ts";
import type { ImageRequest } from "./image-request.ts";
import { askedOf, megapixel } from "./plan.ts";
import { readImageHeader } from "./read-image-header.ts";

/** How a generation ended. */
export interface GenerationOutcome {
  readonly outcome: Outcome;
  readonly reason: ErrorReason | undefined;
}

/** An image that is held: counts up from 0 over the answer, and its sides in pixels, 0 where they can't be read. */
export type HeldImage = { readonly index: number } & PixelSize;

/** What a generation has come to so far, for its usage event. */
export class GenerationRecord {
  readonly #clock: Clock;
  readonly #byokFeePercent: number;
  readonly #spans: AttemptSpans;
  readonly #request: ImageRequest;
  #attempts: readonly AttemptRecord<Candidate<ImageEndpoint>>[] = [];
  #usage: TokenUsage | undefined;
  /** Whether previews are handed out. */
  streaming = false;
  #images = 0;
  #pixels = 0;
  #megapixels = 0;

  constructor(request: ImageRequest, paid: Pick<PaidRequests, "clock" | "byokFeePercent">, span?: Span) {
    this.#spans = new AttemptSpans(span, "image");
    this.#request = request;
    this.#clock = paid.clock;
    this.#byokFeePercent = paid.byokFeePercent;
  }

  /** How many images are held, or were. */
  get images(): number {
    return this.#images;
  }

  /** An attempt has lost, or has its first output. */
  attempted(record: AttemptRecord<Candidate<ImageEndpoint>>): void {
    this.#attempts = [...this.#attempts, record];
    this.#spans.attempted(record);
  }

  /** All attempts as they ended, in place of what was told before. */
  allEnded(attempts: readonly AttemptRecord<Candidate<ImageEndpoint>>[]): void {
    this.#attempts = attempts;
    const last = attempts.at(-1);
    if (last !== undefined) this.#spans.ended(last);
  }

  /** The tokens that the upstream reported for the whole answer. */
  usedTokens(usage: TokenUsage | undefined): void {
    this.#usage = usage;
  }

  /** All bytes of an image are in hand: from here on it is charged. Resolves with what there is to say of it. */
  async held({ bytes }: { readonly bytes: Uint8Array }): Promise<HeldImage> {
    const index = this.#images++;
    const size = await sizeOf(bytes);
    const pixels = size.width * size.height;
    this.#pixels += pixels;
    this.#megapixels += Math.ceil(pixels / megapixel);
    return { index, ...size };
  }

  /**
   * What the request came to; undefined without an attempt. Images are charged that were held; where the upstream prices
   * tokens and told none, the most that these images can have been.
   */
  end({ outcome, reason }: GenerationOutcome): PaidRequestEnd {
    const last = this.#attempts.at(-1);
    if (last === undefined) return undefined;
    this.#spans.ended({ outcome, reason }, this.#usage);
    const listPriceNanoUsd = this.#images === 0 ? 0n : this.#priceAt(last.endpoint);
    const attempts = this.#attempts.map((record) =>
      record.outcome === Outcome.UNSPECIFIED ? endAttempt(record, { outcome, reason }, this.#clock) : record,
    );
    return {
      outcome,
      reason,
      endpoint: last.endpoint,
      attempts: attempts.map(toProtoAttempt),
      firstOutputAtMs:
        last.firstOutputMs === undefined ? undefined : Math.round(last.startedAtMs + last.firstOutputMs),
      tokens: toProtoTokens(this.#usage),
      units: {
        outputImages: BigInt(this.#images),
        outputPixels: BigInt(this.#pixels),
        inputImages: BigInt(this.#request.references.length),
      },
      byok: last.endpoint.ownKey !== undefined,
      costNanoUsd: chargeFor(last.endpoint, listPriceNanoUsd, this.#byokFeePercent),
      listPriceNanoUsd,
      cancelled: outcome === Outcome.CANCELLED,
      streamed: this.streaming,
    };
  }

  #priceAt({ image, prices }: ImageEndpoint): bigint {
    const asked = { ...askedOf(image, this.#request), images: this.#images, megapixels: this.#megapixels };
    const usage = this.#usage;
    const isByTokens = prices.some(({ unit }) => unit === "token");
    if (isByTokens && usage === undefined) return mostImagesCanCost(prices, asked);
    const { prompt = 0, imagePrompt = 0, completion = 0 } = usage ?? {};
    return imageListPrice(prices, {
      ...asked,
      textTokens: prompt - imagePrompt,
      referenceTokens: imagePrompt,
      outputTokens: completion,
    });
  }
}

/** From the header alone. An image whose header can't be read has no size: the client gets it as it is. */
async function sizeOf(bytes: Uint8Array): Promise<PixelSize> {
  try {
    // Markup has no header; libvips works out its size.
    const { width, height } = readImageHeader(bytes) ?? (await sharp(bytes).metadata());
    return { width, height };
  } catch {
    return { width: 0, height: 0 };
  }
}
