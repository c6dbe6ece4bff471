import { Catalog, type ImageEndpoint } from "../../providers/catalog/catalog.ts";
import type { ImageCapabilities } from "../../providers/catalog/image.ts";
import type {
  AttemptContext,
  ImageAdapter,
  ImageAnswer,
  ImageCall,
  ImageOutput,
} from "../../providers/contract.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import {
  accept,
  modelsOf,
  outputsOf,
  providersOf,
  reportOf,
  type Script,
  type SeenCall as Seen,
  type Step,
} from "./scripted-adapter.ts";

/** What a painter does with each call. */
export interface PainterScript extends Script<ImageOutput> {
  readonly output?: readonly Step<ImageOutput>[];
  readonly unrecognizedWords?: readonly string[];
}

/** One call as a painter saw it. */
export type SeenCall = Seen<ImageCall>;

/** An image adapter that follows a script and keeps the calls it saw. */
export class FakePainter implements ImageAdapter {
  readonly seen: SeenCall[] = [];
  readonly #script: PainterScript;

  constructor(script: PainterScript = { output: [image()] }) {
    this.#script = script;
  }

  async generate(call: ImageCall, context: AttemptContext): Promise<ImageAnswer> {
    const { output = [], unrecognizedWords = [] } = this.#script;
    const seen = await accept(this.seen, this.#script, call, context);
    return {
      output: outputsOf(output, seen),
      report: () => reportOf(this.#script, seen),
      unrecognizedWords,
    };
  }
}

const pngSignature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** So many bytes that begin as a PNG does; no decoder takes them. */
export function pngBytes(length = 64, filler = 1): Uint8Array {
  const bytes = new Uint8Array(Math.max(length, pngSignature.length)).fill(filler);
  bytes.set(pngSignature);
  return bytes;
}

/** A final image of these bytes. */
export function image(bytes = pngBytes(), mediaType = "image/png"): ImageOutput {
  return { kind: "image", bytes, mediaType };
}

/** A preview of so many bytes. */
export function partial(index = 0, length = 16): ImageOutput {
  return { kind: "partial", index, bytes: pngBytes(length), mediaType: "image/png" };
}

/** Providers by slug that are all on and draw with these adapters; those without one are off. */
export function fakeImageProviders(
  painters: Readonly<Record<string, ImageAdapter | undefined>>,
): ProviderSet {
  return providersOf("image", painters);
}

/** What a test changes about an endpoint. */
export type ImageEndpointChanges = Partial<Omit<ImageEndpoint, "image">> & {
  readonly image?: Partial<ImageCapabilities>;
};

/** An endpoint that makes every raster format in any size, named after its provider. */
export function imageEndpoint({ image: changed, ...changes }: ImageEndpointChanges = {}): ImageEndpoint {
  const { providerSlug = "acme", model = "acme/brush" } = changes;
  return {
    id: `endpoint-of-${providerSlug}`,
    model,
    permaslug: `${model}-2030-01-01`,
    providerSlug,
    providerName: providerSlug.toUpperCase(),
    upstreamModel: "brush-1",
    passthrough: [],
    prices: [
      {
        billable: "output_image",
        unit: "image",
        variant: "",
        nanoUsdPerMillion: 1_000_000_000n,
        mostTokensEach: 0n,
      },
    ],
    settings: {},
    ...changes,
    image: {
      formats: ["png", "jpeg", "webp"],
      sizes: anySizes,
      autoSize: false,
      maxN: 10,
      qualities: ["low", "medium", "high"],
      backgrounds: ["transparent", "opaque"],
      compression: true,
      seed: true,
      maxReferences: 4,
      mask: false,
      streaming: true,
      maxStreamedN: 10,
      maxPromptCharacters: 100,
      ...changed,
    },
  };
}

/** Four ratios in all tiers, on whole pixels. */
export const anySizes = {
  kind: "grid",
  aspectRatios: ["1:1", "2:1", "1:2", "16:9"],
  resolutions: ["512", "1K", "2K", "4K"],
  defaultResolution: "1K",
  multipleOf: 1,
  minPixels: 1024,
  maxPixels: 4096 * 4096,
  maxSide: 8192,
  maxRatio: undefined,
} as const satisfies ImageCapabilities["sizes"];

/** A catalogue of these endpoints and the models that they name. */
export function imageCatalogOf(...endpoints: readonly ImageEndpoint[]): Catalog {
  return new Catalog(modelsOf("image", endpoints), [], endpoints);
}
