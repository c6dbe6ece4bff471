import { silentLog } from "../../lib/runtime/log.ts";
import { Catalog, type ImageEndpoint } from "../../providers/catalog/catalog.ts";
import type { ImageCapabilities } from "../../providers/catalog/image.ts";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageAnswer,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type TokenUsage,
} from "../../providers/contract.ts";
import { createProviders, type ProviderSet } from "../../providers/registry.ts";
import { noResultFetches } from "./no-results.ts";

/** Gives an output, throws, falls silent until it is aborted, or waits for a promise and takes no notice of the abort. */
export type PainterStep = ImageOutput | Error | "silence" | Promise<unknown>;

/** What a painter does with each call. */
export interface PainterScript {
  /** Before it accepts the call. */
  readonly before?: readonly PainterStep[];
  readonly output?: readonly PainterStep[];
  readonly usage?: TokenUsage;
  readonly unrecognizedWords?: readonly string[];
  /** Whether its request is sent whole, which it tells as it begins; true unless given. */
  readonly sent?: boolean;
}

/** One call as a painter saw it. */
export interface SeenCall extends AttemptContext {
  readonly call: ImageCall;
  /** How many outputs were asked for and given. */
  pulled: number;
  /** Whether its output has ended, in whatever way. */
  ended: boolean;
}

/** An image adapter that follows a script and keeps the calls it saw. */
export class FakePainter implements ImageAdapter {
  readonly seen: SeenCall[] = [];
  readonly #script: PainterScript;

  constructor(script: PainterScript = { output: [image()] }) {
    this.#script = script;
  }

  async generate(call: ImageCall, context: AttemptContext): Promise<ImageAnswer> {
    const seen: SeenCall = { ...context, call, pulled: 0, ended: false };
    this.seen.push(seen);
    if (this.#script.sent !== false) context.onSent();
    for (const step of this.#script.before ?? []) await perform(step, context.signal);
    const { usage, unrecognizedWords = [] } = this.#script;
    return {
      output: this.#paint(seen),
      report: () => (seen.ended ? { tokens: usage } : undefined),
      unrecognizedWords,
    };
  }

  async *#paint(seen: SeenCall): AsyncGenerator<ImageOutput> {
    try {
      for (const step of this.#script.output ?? []) {
        await perform(step, seen.signal);
        if (!isOutput(step)) continue;
        seen.pulled += 1;
        yield step;
      }
    } finally {
      seen.ended = true;
    }
  }
}

function isOutput(step: PainterStep): step is ImageOutput {
  return typeof step === "object" && "kind" in step && !(step instanceof Error);
}

async function perform(step: PainterStep, signal: AbortSignal): Promise<void> {
  if (step instanceof Promise) {
    await step;
    return;
  }
  if (step instanceof Error) throw step;
  if (step === "silence") await aborted(signal);
  if (signal.aborted) throw new ProviderError("network", "the request was ended from this side");
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve, { once: true });
  });
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
  const manifests = Object.entries(painters).map(([slug, painter]) => ({
    slug,
    defaultBaseUrl: `http://${slug}.test`,
    needsKey: painter === undefined,
    create: async () => (painter === undefined ? {} : { image: painter }),
  }));
  const http = { request: () => Promise.reject(new Error("a fake painter makes no requests")) };
  return createProviders({ environment: {}, http, results: noResultFetches, log: silentLog, manifests });
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
  const models = new Map(endpoints.map(({ model, permaslug }) => [model, permaslug]));
  return new Catalog(
    [...models].map(([id, permaslug]) => ({
      id,
      permaslug,
      name: id.toUpperCase(),
      description: `Draws as ${id}.`,
      createdUnixS: 1_900_000_000,
      medium: "image",
    })),
    [],
    endpoints,
  );
}
