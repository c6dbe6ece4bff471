import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { ReservationOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { ImagePrice } from "../../providers/catalog/image.ts";
import { ProviderError, type TokenUsage } from "../../providers/contract.ts";
import { FakePainter, image, type PainterScript } from "../../test/fakes/fake-image.ts";
import { FakePaidRequests, failureOf, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { imageDependencies, imageRequest } from "../../test/fakes/image-scene.ts";
import { type GenerationFrame, generate } from "./generate.ts";
import type { ImageRequest } from "./image-request.ts";
import type { LoadReferences } from "./references/request-images.ts";

const failure = new ProviderError("upstream", "our words", { status: 500 });
const million = 1_000_000n;
const perImage: ImagePrice = {
  billable: "output_image",
  unit: "image",
  variant: "",
  nanoUsdPerMillion: 10n * million,
  mostTokensEach: 0n,
};
const perMegapixel: ImagePrice = { ...perImage, unit: "megapixel" };
const byTokens: readonly ImagePrice[] = [
  { ...perImage, unit: "token", mostTokensEach: 100n },
  { ...perImage, billable: "input_text", unit: "token", mostTokensEach: 4n },
];
const pictureOf = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "red" } })
    .png()
    .toBuffer();

interface SceneOptions {
  readonly painter?: PainterScript;
  readonly prices?: readonly ImagePrice[];
  readonly pixelsPerMegapixel?: number | undefined;
  readonly paid?: FakePaidRequests;
  readonly loadReferences?: LoadReferences;
  readonly maxReferenceMegapixels?: number;
}

function scene({
  painter,
  prices = [perImage],
  pixelsPerMegapixel,
  paid = new FakePaidRequests(),
  loadReferences = async () => [],
  maxReferenceMegapixels,
}: SceneOptions) {
  const fake = new FakePainter(painter);
  const controller = new AbortController();
  const draw = (changes: Partial<ImageRequest> = {}): AsyncIterableIterator<GenerationFrame, void> => {
    const dependencies = imageDependencies(
      { acme: fake },
      { endpoint: { prices, image: { maxReferenceMegapixels, pixelsPerMegapixel } }, paid, loadReferences },
    );
    return generate(imageRequest(changes), someAttribution, dependencies, controller.signal, silentLog);
  };
  return { draw, paid, fake, controller };
}

describe("images", () => {
  test("are held at the most they can cost and charged at what came, with their pixels", async () => {
    const picture = await pictureOf(40, 30);
    const { draw, paid } = scene({ painter: { output: [image(picture), image(picture)] } });
    const frames = await Array.fromAsync(draw({ n: 3 }));
    expect(paid.reservations).toMatchObject([{ amountNanoUsd: 30n }]);
    expect(frames.at(-1)).toMatchObject({ kind: "finished", costNanoUsd: 20n, byok: false });
    expect(paid.event()).toMatchObject({
      api: Api.IMAGE,
      outcome: Outcome.SUCCEEDED,
      costNanoUsd: 20n,
      units: { outputImages: 2n, outputPixels: 2400n },
      streamed: false,
    });
  });

  test("that are fewer because the provider broke off are charged", async () => {
    const { draw, paid } = scene({ painter: { output: [image(), failure] } });
    await Array.fromAsync(draw({ n: 2 }));
    expect(paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      costNanoUsd: 10n,
      attempts: [{ outcome: Outcome.FAILED, providerStatus: 500 }],
    });
  });

  test("of which none came cost nothing", async () => {
    const { draw, paid } = scene({ painter: { output: [failure] } });
    expect(await failureOf(draw())).toBe(ErrorReason.PROVIDER_FAILED);
    expect(paid.event()).toMatchObject({ outcome: Outcome.FAILED, costNanoUsd: 0n });
  });

  test("that are priced by the megapixel cost what they measure, each begun one whole", async () => {
    const [small, large] = [await pictureOf(10, 10), await pictureOf(1500, 1000)];
    const { draw, paid } = scene({
      prices: [perMegapixel],
      painter: { output: [image(small), image(large)] },
    });
    await Array.fromAsync(draw({ n: 2 }));
    expect(paid.event()).toMatchObject({ costNanoUsd: 30n });
  });

  test("whose first megapixel is dearer, and whose references cost as they measure", async () => {
    const reference = {
      bytes: await pictureOf(10, 10),
      mediaType: "image/png",
      width: 1500,
      height: 1000,
    } as const;
    const { draw, paid } = scene({
      prices: [
        { ...perImage, unit: "first_megapixel" },
        { ...perImage, unit: "further_megapixel", nanoUsdPerMillion: 3n * million },
        { ...perImage, billable: "input_reference", unit: "megapixel", nanoUsdPerMillion: million },
      ],
      painter: { output: [image(await pictureOf(2000, 2000))] },
      loadReferences: async () => [reference],
    });
    await Array.fromAsync(draw({ references: [{ kind: "url", url: "https://a.test/one.png" }] }));
    expect(paid.event()).toMatchObject({ costNanoUsd: 10n + 3n * 3n + 2n });
  });

  test("cost apart from the text that comes with them, where it has a price of its own", async () => {
    const usage: TokenUsage = { prompt: 12, completion: 50, imageCompletion: 40 };
    const text: ImagePrice = {
      ...perImage,
      billable: "output_text",
      unit: "token",
      nanoUsdPerMillion: 3n * million,
    };
    const prices = [...byTokens, { ...text, mostTokensEach: 100n }];
    const { draw, paid } = scene({ prices, painter: { output: [image()], usage } });
    await Array.fromAsync(draw());
    expect(paid.event()).toMatchObject({ costNanoUsd: 10n * 40n + 3n * 10n + 10n * 12n });
  });

  test("are not asked for where a reference has more megapixels than the endpoint takes", async () => {
    const reference = {
      bytes: await pictureOf(10, 10),
      mediaType: "image/png",
      width: 3000,
      height: 2000,
    } as const;
    const { draw, fake } = scene({ maxReferenceMegapixels: 5, loadReferences: async () => [reference] });
    const references = [{ kind: "url", url: "https://a.test/one.png" } as const];
    expect(await failureOf(draw({ references }))).toBe(ErrorReason.REFERENCE_REFUSED);
    expect(fake.seen).toEqual([]);
  });

  test.for([
    [1_048_576, 10n],
    [undefined, 13n],
  ] as const)("are of the vendor's own megapixels: %s pixels", async ([pixelsPerMegapixel, cost]) => {
    const first = { ...perImage, unit: "first_megapixel" } as const;
    const further = { ...perImage, unit: "further_megapixel", nanoUsdPerMillion: 3n * million } as const;
    const painter = { output: [image(await pictureOf(1024, 1024))] };
    const { draw, paid } = scene({ prices: [first, further], painter, pixelsPerMegapixel });
    const pixels = { width: 1024, height: 1024 };
    await Array.fromAsync(draw({ size: { aspectRatio: undefined, resolution: undefined, pixels } }));
    expect(paid.reservations[0]).toMatchObject({ amountNanoUsd: cost });
    expect(paid.event()).toMatchObject({ costNanoUsd: cost });
  });
});

describe("tokens", () => {
  const usage: TokenUsage = { prompt: 12, imagePrompt: 2, completion: 50 };

  test("are charged as the provider reports them", async () => {
    const { draw, paid } = scene({ prices: byTokens, painter: { output: [image()], usage } });
    await Array.fromAsync(draw());
    expect(paid.event()).toMatchObject({
      costNanoUsd: 10n * (50n + 10n),
      tokens: { prompt: 12n, imagePrompt: 2n, completion: 50n },
    });
  });

  test("are charged at their bound where the provider reported none", async () => {
    const { draw, paid } = scene({ prices: byTokens, painter: { output: [image(), failure] } });
    await Array.fromAsync(draw({ n: 2 }));
    expect(paid.event()).toMatchObject({ costNanoUsd: 10n * (100n + 7n * 4n), tokens: { completion: 0n } });
  });
});

describe("the hold", () => {
  test("comes before references are fetched, and is released when they are refused", async () => {
    const order: string[] = [];
    const paid = new FakePaidRequests();
    const { draw, fake } = scene({
      paid,
      async loadReferences() {
        order.push(`references with ${paid.reservations.length} holds`);
        throw new DomainError(ErrorReason.REFERENCE_REFUSED, "no image");
      },
    });
    const references = [{ kind: "url", url: "https://images.example/a.png" }] as const;
    expect(await failureOf(draw({ references }))).toBe(ErrorReason.REFERENCE_REFUSED);
    expect(order).toEqual(["references with 1 holds"]);
    expect([fake.seen.length, paid.events.length, paid.released.length]).toEqual([0, 0, 1]);
  });

  test("that is refused lets nothing be fetched or drawn", async () => {
    const paid = new FakePaidRequests();
    paid.outcome = ReservationOutcome.CREDITS_EXHAUSTED;
    const { draw, fake } = scene({ paid });
    expect(await failureOf(draw())).toBe(ErrorReason.CREDITS_EXHAUSTED);
    expect([fake.seen.length, paid.events.length, paid.released.length]).toEqual([0, 0, 0]);
  });
});

test("an own key costs the fee, and the frame says whose key it was", async () => {
  const paid = new FakePaidRequests();
  paid.ownKeysBySlug.set("acme", "own-secret");
  const { draw, fake } = scene({ paid });
  const frames = await Array.fromAsync(draw());
  expect(fake.seen).toMatchObject([{ connection: { apiKey: "own-secret" } }]);
  expect(paid.reservations).toMatchObject([{ amountNanoUsd: 10n, byokAmountNanoUsd: 10n }]);
  expect(frames.at(-1)).toMatchObject({ costNanoUsd: 1n, byok: true });
  expect(paid.event()).toMatchObject({ byok: true, costNanoUsd: 1n, listPriceNanoUsd: 10n });
});
