import sharp from "sharp";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import { imageListPrice, mostImagesCanCost } from "../../providers/catalog/endpoint-price.ts";
import type { PixelSize } from "../../providers/catalog/image.ts";
import type { Delivered } from "../../providers/routing/generation-record.ts";
import type { BilledDelivery } from "../../providers/routing/reported-usage.ts";
import type { ImageRequest } from "./image-request.ts";
import { askedOf, type LoadedReferences, megapixelsOf } from "./plan.ts";
import { readImageHeader } from "./references/read-image-header.ts";

/** An image that is held: counts up from 0 over the answer, and its sides in pixels, 0 where they can't be read. */
type HeldImage = { readonly index: number } & PixelSize;

/** The images of one generation. Those are charged whose final bytes were held here, whoever took them. */
export class DeliveredImages implements Delivered<ImageEndpoint> {
  /** Whether previews are handed out. */
  streamed = false;
  readonly #request: ImageRequest;
  readonly #sizes: PixelSize[] = [];
  #count = 0;
  #references: readonly PixelSize[] | undefined;

  constructor(request: ImageRequest) {
    this.#request = request;
  }

  /** How many images are held, or were. */
  get count(): number {
    return this.#count;
  }

  get units() {
    return {
      outputImages: BigInt(this.#count),
      outputPixels: BigInt(this.#sizes.reduce((sum, { width, height }) => sum + width * height, 0)),
      inputImages: BigInt(this.#request.references.length),
    };
  }

  /** What the request starts from is in hand. */
  startsFrom({ references, mask }: LoadedReferences): void {
    const images = mask === undefined ? references : [...references, mask];
    this.#references = images.map(({ width, height }) => ({ width, height }));
  }

  /** All bytes of an image are in hand: from here on it is charged. Resolves with what there is to say of it. */
  async held(bytes: Uint8Array): Promise<HeldImage> {
    const index = this.#count++;
    const size = await sizeOf(bytes);
    this.#sizes.push(size);
    return { index, ...size };
  }

  billedAt(endpoint: ImageEndpoint): BilledDelivery | undefined {
    if (this.#count === 0) return undefined;
    const { image, prices } = endpoint;
    const megapixels = (sizes: readonly PixelSize[]) =>
      sizes.reduce((sum, size) => sum + megapixelsOf(size, image), 0);
    const bound = askedOf(endpoint, this.#request);
    const asked = {
      ...bound,
      images: this.#count,
      megapixels: megapixels(this.#sizes),
      referenceMegapixels:
        this.#references === undefined ? bound.referenceMegapixels : megapixels(this.#references),
    };
    const byTokens = (isOutput: boolean) =>
      prices.some(({ billable, unit }) => unit === "token" && billable.startsWith("output_") === isOutput);
    const textApart = prices.some(({ billable }) => billable === "output_text");
    return {
      inputByTokens: byTokens(false),
      outputByTokens: byTokens(true),
      byReportedCost: endpoint.billedBy === "reported_cost",
      mostNanoUsd: mostImagesCanCost(prices, asked),
      priceOf: ({ prompt, imagePrompt = 0, completion, imageCompletion = completion }) =>
        imageListPrice(prices, {
          ...asked,
          textTokens: prompt - imagePrompt,
          referenceTokens: imagePrompt,
          outputTokens: textApart ? imageCompletion : completion,
          outputTextTokens: completion - imageCompletion,
        }),
    };
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
