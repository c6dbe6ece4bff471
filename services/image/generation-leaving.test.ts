import { describe, expect, test } from "vitest";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { ImagePrice } from "../../providers/catalog/image.ts";
import { ProviderError, type TokenUsage } from "../../providers/contract.ts";
import {
  FakePainter,
  type ImageEndpointChanges,
  image,
  type PainterScript,
  partial,
  pngBytes,
} from "../../test/fakes/fake-image.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { imageDependencies, imageRequest } from "../../test/fakes/image-scene.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type GenerationFrame, generate } from "./generate.ts";
import type { ImageRequest } from "./image-request.ts";

const mebibyte = 1 << 20;
const failure = new ProviderError("upstream", "our words", { status: 500 });
const perImage: ImagePrice = {
  billable: "output_image",
  unit: "image",
  variant: "",
  nanoUsdPerMillion: 10_000_000n,
  mostTokensEach: 0n,
};
const byTokens: readonly ImagePrice[] = [
  { ...perImage, unit: "token", mostTokensEach: 100n },
  { ...perImage, billable: "input_text", unit: "token", mostTokensEach: 4n },
];
const usage: TokenUsage = { prompt: 12, imagePrompt: 2, completion: 50 };

interface SceneOptions {
  readonly painter: PainterScript;
  readonly request?: Partial<ImageRequest>;
  readonly endpoint?: ImageEndpointChanges;
  readonly loadReferences?: (signal: AbortSignal) => Promise<never>;
}

/** One endpoint, and a caller who can leave. */
class Scene {
  readonly painter: FakePainter;
  readonly spare = new FakePainter();
  readonly caller = new AbortController();
  readonly paid = new FakePaidRequests();
  readonly frames: ReturnType<typeof generate>;
  readonly taken: GenerationFrame[] = [];

  constructor({ painter, request, endpoint, loadReferences }: SceneOptions) {
    this.painter = new FakePainter(painter);
    const painters = { acme: this.painter, spare: this.spare };
    const dependencies = imageDependencies(painters, {
      endpoint: { prices: [perImage], ...endpoint },
      paid: this.paid,
      loadReferences: (_sources, signal) => loadReferences?.(signal) ?? Promise.resolve([]),
    });
    const asked = imageRequest(request);
    this.frames = generate(asked, someAttribution, dependencies, this.caller.signal, silentLog);
  }

  async take(...kinds: GenerationFrame["kind"][]): Promise<void> {
    for (const kind of kinds) expect((await this.frames.next()).value).toMatchObject({ kind });
  }

  /** Leaves while the next frame is awaited, or while nobody asks for one. */
  async leave(how: "waiting" | "resting" = "waiting"): Promise<void> {
    const next = how === "waiting" ? this.frames.next() : undefined;
    this.caller.abort();
    await next?.catch(() => undefined);
  }

  get aborted(): boolean | undefined {
    return this.painter.seen[0]?.signal.aborted;
  }
}

/** An output that comes when it is let go of. */
function held() {
  return Promise.withResolvers<void>();
}

describe("a caller who leaves before anything was sent", () => {
  test("while references are fetched ends that, leaves no event, and the hold is released", async () => {
    const fetching = Promise.withResolvers<void>();
    const scene = new Scene({
      painter: {},
      request: { references: [{ kind: "url", url: "https://images.example/a.png" }] },
      loadReferences: (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(DomainError.from(signal.reason)));
          fetching.resolve();
        }),
    });
    await fetching.promise;
    await scene.leave();
    await scene.frames.ended;
    expect([scene.paid.events.length, scene.paid.released.length]).toEqual([0, 1]);
    expect(scene.painter.seen).toEqual([]);
  });

  test("while a request is being sent ends it, leaves no event, and the hold is released", async () => {
    const scene = new Scene({ painter: { sent: false, before: ["silence"] } });
    await waitUntil(() => scene.painter.seen.length === 1);
    await scene.leave();
    await scene.frames.ended;
    expect([scene.aborted, scene.paid.events.length, scene.paid.released.length]).toEqual([true, 0, 1]);
  });
});

describe("a caller who leaves once a request was sent whole", () => {
  test("is charged for all images as if he had stayed", async () => {
    const accepted = held();
    const output = [image(), image()];
    const scene = new Scene({ painter: { before: [accepted.promise], output }, request: { n: 2 } });
    await waitUntil(() => scene.painter.seen.length === 1);
    await scene.leave();
    expect([scene.aborted, scene.paid.events.length, scene.paid.running.count]).toEqual([false, 0, 1]);
    accepted.resolve();
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      reason: "",
      cancelled: true,
      costNanoUsd: 20n,
      units: { outputImages: 2n },
      attempts: [{ outcome: Outcome.SUCCEEDED }],
    });
    expect(scene.paid.running.count).toBe(0);
  });

  test("and the upstream fails pays nothing, and no other is tried", async () => {
    const accepted = held();
    const scene = new Scene({ painter: { before: [accepted.promise, failure] } });
    await waitUntil(() => scene.painter.seen.length === 1);
    await scene.leave();
    accepted.resolve();
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.FAILED,
      reason: "provider_failed",
      cancelled: true,
      costNanoUsd: 0n,
    });
    expect(scene.spare.seen).toEqual([]);
  });

  test.for(["waiting", "resting"] as const)("amid previews is charged for the image: %s", async (how) => {
    const more = held();
    const output = [partial(0), partial(1), more.promise, image()];
    const scene = new Scene({
      painter: { output, usage },
      request: { stream: true },
      endpoint: { prices: byTokens },
    });
    await scene.take("started", "partial", "partial");
    await scene.leave(how);
    expect(scene.aborted).toBe(false);
    more.resolve();
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      cancelled: true,
      costNanoUsd: 600n,
    });
  });

  test.for([
    ["before its bytes", ["started", "image_start"]],
    ["amid its bytes", ["started", "image_start", "image_data"]],
    ["after its last byte, before the next pull", ["started", "image_start", "image_data", "image_data"]],
  ] as const)("while an image is handed out, %s, is charged by the report", async ([, kinds]) => {
    const output = [image(pngBytes(2 * mebibyte))];
    const scene = new Scene({ painter: { output, usage }, endpoint: { prices: byTokens } });
    await scene.take(...kinds);
    await scene.leave("resting");
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      cancelled: true,
      costNanoUsd: 600n,
      tokens: { prompt: 12n, completion: 50n },
    });
    expect(scene.paid.doubts).toEqual([]);
  });

  test("takes all images one by one and drops them", async () => {
    const counted = held();
    const output = Array.from({ length: 10 }, () => image(pngBytes(mebibyte)));
    const scene = new Scene({ painter: { before: [counted.promise], output }, request: { n: 10 } });
    await waitUntil(() => scene.painter.seen.length === 1);
    await scene.leave();
    counted.resolve();
    await scene.frames.ended;
    expect(scene.painter.seen[0]).toMatchObject({ pulled: 10, ended: true });
    expect(scene.paid.event()).toMatchObject({ costNanoUsd: 100n, units: { outputImages: 10n } });
  });
});

describe("an answer that ends before its last image is charged by what was reported all the same", () => {
  test("where the provider breaks off", async () => {
    const scene = new Scene({
      painter: { output: [image(), failure], usage },
      request: { n: 2 },
      endpoint: { prices: byTokens },
    });
    await Array.fromAsync(scene.frames);
    expect(scene.paid.event()).toMatchObject({ costNanoUsd: 600n, cancelled: false });
  });

  test("where the vendor bills no cancelled work and the caller leaves", async () => {
    const scene = new Scene({
      painter: { output: [image(), "silence"], usage },
      request: { n: 2 },
      endpoint: { prices: byTokens, cancel: "free" },
    });
    await scene.take("started", "image_start", "image_data");
    await scene.leave();
    await scene.frames.ended;
    expect(scene.aborted).toBe(true);
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.CANCELLED,
      cancelled: true,
      costNanoUsd: 600n,
    });
  });
});

describe("where the vendor bills no cancelled work, a caller who leaves", () => {
  test.for([
    ["before an image pays nothing", { before: ["silence"] }, 0n],
    ["after one pays for that one", { output: [image(), "silence", image()] }, 10n],
  ] as const)("%s", async ([, painter, cost]) => {
    const scene = new Scene({ painter, request: { n: 2 }, endpoint: { cancel: "free" } });
    if (cost === 0n) await waitUntil(() => scene.painter.seen.length === 1);
    else await scene.take("started", "image_start", "image_data");
    await scene.leave();
    await scene.frames.ended;
    expect(scene.aborted).toBe(true);
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.CANCELLED,
      cancelled: true,
      costNanoUsd: cost,
    });
  });
});
