import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationFrames } from "../../lib/generation/run-generation.ts";
import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { ProviderError, type ProviderErrorKind } from "../../providers/contract.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import {
  FakePainter,
  type ImageEndpointChanges,
  image,
  type PainterScript,
  partial,
  pngBytes,
  type SeenCall,
} from "../../test/fakes/fake-image.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { imageDependencies, imageRequest } from "../../test/fakes/image-scene.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type GenerateDependencies, type GenerationFrame, generate } from "./generate.ts";
import type { ImageRequest } from "./image-request.ts";
import type { CheckedReference } from "./references/reference-check.ts";

const longMs = 60_000;
const mebibyte = 1 << 20;
const reference: CheckedReference = { bytes: pngBytes(), mediaType: "image/png", width: 8, height: 8 };
const source = { kind: "data", bytes: reference.bytes } as const;

interface SceneOptions {
  first?: PainterScript;
  second?: PainterScript;
  timeoutMs?: number;
  longestSilenceMs?: number;
  endpoint?: ImageEndpointChanges;
  loadReferences?: GenerateDependencies["loadReferences"];
}

/** Two endpoints of one model, whose breakers open at the first failure. */
class Scene {
  readonly first: FakePainter;
  readonly second: FakePainter;
  readonly controller = new AbortController();
  readonly logged: Record<string, unknown>[] = [];
  /** What was done, in order. */
  readonly paid = new FakePaidRequests();
  readonly effects: string[] = [];
  readonly health = new EndpointHealth({ clock, breaker: { failuresToOpen: 1, openMs: longMs } });
  readonly #options: SceneOptions;

  constructor(options: SceneOptions = {}) {
    this.#options = options;
    this.first = new FakePainter(options.first);
    this.second = new FakePainter(options.second);
  }

  draw(changes: Partial<ImageRequest> = {}): GenerationFrames<GenerationFrame> {
    const { endpoint, timeoutMs = longMs, longestSilenceMs = longMs, loadReferences } = this.#options;
    const painters = { first: this.first, second: this.second };
    const dependencies = imageDependencies(painters, {
      ...(endpoint === undefined ? {} : { endpoint }),
      health: this.health,
      limits: { timeoutMs, longestSilenceMs },
      paid: this.paid,
      loadReferences: async (sources, signal) => {
        this.effects.push(`references with ${this.first.seen.length} calls made`);
        return loadReferences?.(sources, signal) ?? sources.map(() => reference);
      },
    });
    const destination = { write: (line: string) => void this.logged.push(JSON.parse(line)) };
    const log = createLog({ name: "test", level: "trace", destination });
    return generate(imageRequest(changes), someAttribution, dependencies, this.controller.signal, log);
  }

  /** The first endpoint's only call. */
  seen(): SeenCall {
    const [call, ...others] = this.first.seen;
    if (call === undefined || others.length > 0) throw new Error("not called once");
    return call;
  }

  /** Whether the first endpoint's breaker is open. */
  get failureCounted(): boolean {
    return this.health.read("endpoint-of-first").retryAfterMs > 0;
  }
}

const kinds = (frames: readonly GenerationFrame[]) => frames.map(({ kind }) => kind);
const failed = (kind: ProviderErrorKind, status?: number) =>
  new ProviderError(kind, "our words", {
    cause: new Error("the upstream's words about a secret prompt"),
    ...(status === undefined ? {} : { status }),
  });

/** All frames before the failure, and the failure. */
async function untilFailure(frames: GenerationFrames<GenerationFrame>) {
  const taken: GenerationFrame[] = [];
  try {
    for await (const frame of frames) taken.push(frame);
  } catch (thrown) {
    if (thrown instanceof DomainError) return { taken, error: thrown };
    throw thrown;
  }
  throw new Error("did not fail as it should");
}

describe("an answer", () => {
  test("is its start, each image whole, and its end", async () => {
    const usage = { prompt: 12, completion: 345 };
    const unrecognizedWords = [
      "gryphon",
      "é".repeat(100),
      ...Array.from({ length: 50 }, (_, at) => `w${at}`),
    ];
    const script = { output: [image(pngBytes(64)), image(pngBytes(65))], usage, unrecognizedWords };
    const scene = new Scene({ first: script });
    const frames = await Array.fromAsync(scene.draw({ n: 2, quality: "low" }));
    expect(kinds(frames)).toEqual([
      "started",
      "image_start",
      "image_data",
      "image_start",
      "image_data",
      "finished",
    ]);
    expect(frames[0]).toMatchObject({
      generationId: expect.stringMatching(/^gen-img-[0-9a-f-]{36}$/),
      endpoint: { id: "endpoint-of-first" },
      streaming: false,
      ignoredParameters: [],
      unrecognizedPromptWords: ["gryphon", "é".repeat(64), ...unrecognizedWords.slice(2, 32)],
    });
    const unread = { width: 0, height: 0 };
    expect(frames[1]).toEqual({
      kind: "image_start",
      index: 0,
      ...unread,
      mediaType: "image/png",
      sizeBytes: 64,
    });
    expect(frames[3]).toEqual({
      kind: "image_start",
      index: 1,
      ...unread,
      mediaType: "image/png",
      sizeBytes: 65,
    });
    expect(frames.at(-1)).toMatchObject({ kind: "finished", promptTokens: 12n, completionTokens: 345n });
    expect(scene.seen()).toMatchObject({ call: { n: 2, quality: "low", prompt: "A boat." }, ended: true });
    expect(scene.second.seen).toEqual([]);
  });

  test("cuts images into pieces of a mebibyte without copying them", async () => {
    const bytes = pngBytes(2 * mebibyte + 5);
    const frames = await Array.fromAsync(new Scene({ first: { output: [image(bytes)] } }).draw());
    const pieces = frames.flatMap((frame) => (frame.kind === "image_data" ? [frame.bytes] : []));
    expect(pieces.map(({ length }) => length)).toEqual([mebibyte, mebibyte, 5]);
    expect(pieces.map(({ byteOffset }) => byteOffset)).toEqual([0, mebibyte, 2 * mebibyte]);
    expect(pieces.every(({ buffer }) => buffer === bytes.buffer)).toBe(true);
  });

  test("says what bytes are, whatever their upstream calls them", async () => {
    const frames = await Array.fromAsync(
      new Scene({ first: { output: [image(pngBytes(), "image/webp")] } }).draw(),
    );
    expect(frames[1]).toMatchObject({ mediaType: "image/png" });
  });

  test("keeps to the consumer's pace", async () => {
    const scene = new Scene({ first: { output: [image(), image(), image()] }, endpoint: { cancel: "free" } });
    const frames = scene.draw({ n: 3 });
    for (const kind of ["started", "image_start", "image_data"]) {
      expect((await frames.next()).value).toMatchObject({ kind });
    }
    expect(scene.seen().pulled).toBe(1);
    await frames.return();
    await waitUntil(() => scene.seen().ended);
    expect(scene.seen().pulled).toBe(1);
  });
});

describe("previews and text", () => {
  const script: PainterScript = {
    output: [
      { kind: "text", phase: "draft", text: "<svg" },
      partial(5),
      partial(6, 3 * mebibyte + 1),
      partial(7, 3 * mebibyte),
      image(),
    ],
  };

  test("come as they do where they are wanted, counted anew without those that are too large", async () => {
    const frames = await Array.fromAsync(new Scene({ first: script }).draw({ stream: true }));
    expect(kinds(frames)).toEqual([
      "started",
      "text",
      "partial",
      "partial",
      "image_start",
      "image_data",
      "finished",
    ]);
    expect(frames[0]).toMatchObject({ streaming: true, ignoredParameters: [] });
    expect(frames.flatMap((frame) => (frame.kind === "partial" ? [frame.index] : []))).toEqual([0, 1]);
  });

  test("stay here where they are not wanted", async () => {
    const frames = await Array.fromAsync(new Scene({ first: script }).draw());
    expect(kinds(frames)).toEqual(["started", "image_start", "image_data", "finished"]);
    expect(frames[0]).toMatchObject({ streaming: false });
  });

  test("are not asked for where the endpoint can't", async () => {
    const scene = new Scene({ first: script, endpoint: { image: { streaming: false } } });
    const frames = await Array.fromAsync(scene.draw({ stream: true }));
    expect(frames[0]).toMatchObject({ streaming: false, ignoredParameters: ["stream"] });
    expect(kinds(frames)).not.toContain("partial");
    expect(scene.seen().call.stream).toBe(false);
  });

  test("begin the answer, so no other endpoint is tried after one", async () => {
    const scene = new Scene({ first: { output: [partial(), failed("upstream", 500)] } });
    const { taken, error } = await untilFailure(scene.draw({ stream: true }));
    expect(kinds(taken)).toEqual(["started", "partial"]);
    expect(error.reason).toBe(ErrorReason.PROVIDER_FAILED);
    expect([scene.second.seen, scene.failureCounted]).toEqual([[], true]);
  });

  test("need not come for the answer to begin once the endpoint was silent for long", async () => {
    const gate = Promise.withResolvers<void>();
    const scene = new Scene({ first: { output: [gate.promise, partial(), image()] }, longestSilenceMs: 1 });
    const frames = scene.draw({ stream: true });
    expect((await frames.next()).value).toMatchObject({ kind: "started", streaming: true });
    gate.resolve();
    expect(kinds(await Array.fromAsync(frames))).toEqual([
      "partial",
      "image_start",
      "image_data",
      "finished",
    ]);
  });

  test("that fail after such a silence end the answer with an error", async () => {
    const gate = Promise.withResolvers<void>();
    const first = { output: [gate.promise, failed("upstream", 500)] };
    const frames = new Scene({ first, longestSilenceMs: 1 }).draw({ stream: true });
    await frames.next();
    gate.resolve();
    expect((await untilFailure(frames)).error.reason).toBe(ErrorReason.PROVIDER_FAILED);
  });

  test("do not begin it where they are not wanted", async () => {
    const scene = new Scene({ first: { output: [partial(), failed("upstream", 500)] } });
    const frames = await Array.fromAsync(scene.draw());
    expect(frames[0]).toMatchObject({ endpoint: { id: "endpoint-of-second" } });
  });
});

describe("an endpoint that fails", () => {
  test.for<[string, PainterScript]>([
    ["before it accepts", { before: [failed("overloaded", 429)] }],
    ["before its first image", { output: [failed("network")] }],
    ["by ending without an image", { output: [] }],
    ["with something that is no image", { output: [image(new Uint8Array(9))] }],
    ["with an empty image", { output: [image(new Uint8Array(0))] }],
  ])("%s is followed by the next", async ([, first]) => {
    const scene = new Scene({ first });
    const frames = await Array.fromAsync(scene.draw());
    expect(frames[0]).toMatchObject({ endpoint: { id: "endpoint-of-second" } });
    expect(scene.failureCounted).toBe(true);
    expect(scene.logged).toMatchObject([{ msg: "attempt failed", provider: "first" }]);
    expect(JSON.stringify(scene.logged)).not.toContain("secret");
  });

  test("for the caller's own reasons is not followed", async () => {
    const scene = new Scene({ first: { before: [failed("content_policy", 400)] } });
    const { taken, error } = await untilFailure(scene.draw());
    expect([taken, scene.second.seen]).toEqual([[], []]);
    expect(error).toMatchObject({
      reason: ErrorReason.CONTENT_POLICY,
      generationId: expect.stringMatching(/^gen-img-/),
      attempts: [{ providerStatus: 400, reason: ErrorReason.CONTENT_POLICY }],
    });
  });

  test("like all others leaves what all of them said", async () => {
    const scene = new Scene({ first: { output: [] }, second: { output: [] } });
    const { error } = await untilFailure(scene.draw());
    expect(error.reason).toBe(ErrorReason.PROVIDER_BAD_ANSWER);
    expect(error.attempts.map(({ providerName }) => providerName)).toEqual(["FIRST", "SECOND"]);
  });

  test("after a whole image has made fewer than were asked for", async () => {
    const script = { output: [image(), failed("upstream", 500)], usage: { prompt: 1, completion: 1 } };
    const scene = new Scene({ first: script });
    const frames = await Array.fromAsync(scene.draw({ n: 2 }));
    expect(kinds(frames)).toEqual(["started", "image_start", "image_data", "finished"]);
    expect(frames.at(-1)).toMatchObject({ promptTokens: 1n, completionTokens: 1n });
    expect(scene.failureCounted).toBe(true);
    expect(scene.logged).toMatchObject([{ msg: "attempt failed", provider_status: 500 }]);
  });

  test("by a bug ends the answer with an error, also after a whole image", async () => {
    const scene = new Scene({ first: { output: [image(), new TypeError("a bug")] } });
    const { taken, error } = await untilFailure(scene.draw({ n: 2 }));
    expect([kinds(taken).length, error.reason]).toEqual([3, ErrorReason.INTERNAL]);
  });
});

test("fewer images than asked for are an answer, and more are left out", async () => {
  const few = await Array.fromAsync(new Scene({ first: { output: [image()] } }).draw({ n: 4 }));
  expect(kinds(few).filter((kind) => kind === "image_start")).toHaveLength(1);
  const usage = { prompt: 0, completion: 7 };
  const many = new Scene({ first: { output: [image(), image(), partial(), image()], usage } });
  const frames = await Array.fromAsync(many.draw({ n: 1 }));
  expect(kinds(frames)).toEqual(["started", "image_start", "image_data", "finished"]);
  expect(frames.at(-1)).toMatchObject({ completionTokens: 7n });
});

describe("references", () => {
  test("are brought in once, after routing and before the first attempt", async () => {
    const scene = new Scene({ first: { before: [failed("upstream")] } });
    await Array.fromAsync(scene.draw({ references: [source] }));
    expect(scene.effects).toEqual(["references with 0 calls made"]);
    for (const painter of [scene.first, scene.second]) {
      expect(painter.seen[0]?.call.references).toEqual([reference]);
    }
  });

  test("are left alone where no endpoint can serve, and where there are none", async () => {
    const scene = new Scene();
    const { error } = await untilFailure(scene.draw({ references: [source], format: "svg" }));
    expect(error.reason).toBe(ErrorReason.UNSUPPORTED_PARAMETER);
    await Array.fromAsync(scene.draw());
    expect(scene.effects).toEqual([]);
  });

  test("that are refused end the request before any attempt", async () => {
    const refusal = DomainError.invalid([{ path: "x", message: "y" }], ErrorReason.REFERENCE_REFUSED);
    const scene = new Scene({ loadReferences: () => Promise.reject(refusal) });
    const { error } = await untilFailure(scene.draw({ references: [source] }));
    expect(error).toMatchObject({ reason: ErrorReason.REFERENCE_REFUSED, issues: [{ path: "x" }] });
    expect([scene.first.seen, scene.second.seen]).toEqual([[], []]);
  });

  test("hear of the end of the request", async () => {
    const ends = Promise.withResolvers<string>();
    const scene = new Scene({
      loadReferences: (_sources, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            ends.resolve("aborted");
            reject(new DomainError(ErrorReason.CANCELLED, "cancelled"));
          });
        }),
    });
    const drawing = untilFailure(scene.draw({ references: [source] }));
    await waitUntil(() => scene.effects.length > 0);
    scene.controller.abort();
    expect(await ends.promise).toBe("aborted");
    expect((await drawing).error.reason).toBe(ErrorReason.CANCELLED);
  });
});

describe("the end of a request", () => {
  test("by its caller before anything was sent ends the upstream work", async () => {
    const scene = new Scene({ first: { before: ["silence"], sent: false } });
    const drawing = untilFailure(scene.draw());
    await waitUntil(() => scene.first.seen.length > 0);
    scene.controller.abort();
    expect((await drawing).error.reason).toBe(ErrorReason.CANCELLED);
    expect([scene.seen().signal.aborted, scene.second.seen, scene.logged]).toEqual([true, [], []]);
  });

  test("by its caller ends work that is not billed then, also when nobody reads on", async () => {
    const scene = new Scene({
      first: { output: [partial(), "silence", image()] },
      endpoint: { cancel: "free" },
    });
    const frames = scene.draw({ stream: true });
    await frames.next();
    scene.controller.abort();
    expect(scene.seen().signal.aborted).toBe(true);
  });

  test("by its caller after a whole image is no short answer", async () => {
    const scene = new Scene({ first: { output: [image(), "silence"] } });
    const frames = scene.draw({ n: 2 });
    for (let taken = 0; taken < 3; taken++) await frames.next();
    const next = frames.next().catch((thrown: unknown) => thrown);
    scene.controller.abort();
    expect(await next).toMatchObject({ reason: ErrorReason.CANCELLED });
    expect(scene.failureCounted).toBe(false);
  });

  test.for<[string, PainterScript, number]>([
    ["before any output", { before: ["silence"] }, 0],
    ["after a whole image", { output: [image(), "silence"] }, 3],
  ])("by its deadline %s times out", async ([, first, count]) => {
    const scene = new Scene({ first, timeoutMs: 80 });
    const { taken, error } = await untilFailure(scene.draw({ n: 2 }));
    expect([taken.length, error.reason]).toEqual([count, ErrorReason.TIMED_OUT]);
    expect([scene.seen().signal.aborted, scene.second.seen]).toEqual([true, []]);
  });

  test("by its consumer ends work that is not billed then", async () => {
    const scene = new Scene({
      first: { output: [partial(), partial(), image()] },
      endpoint: { cancel: "free" },
    });
    for await (const frame of scene.draw({ stream: true })) if (frame.kind === "partial") break;
    expect(scene.seen().signal.aborted).toBe(true);
    await waitUntil(() => scene.seen().ended);
  });

  test.for<[string, PainterScript]>([
    ["well", {}],
    ["badly", { output: [failed("content_policy")] }],
  ])("that ends %s leaves nothing behind", async ([, first]) => {
    const scene = new Scene({ first: { output: [image()], ...first } });
    await Array.fromAsync(scene.draw()).catch(() => undefined);
    expect(getEventListeners(scene.controller.signal, "abort")).toEqual([]);
  });
});
