import { getEventListeners } from "node:events";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationFrames } from "../../lib/generation/run-generation.ts";
import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { ProviderError, type ProviderErrorKind } from "../../providers/contract.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import {
  type EndpointChanges,
  FakeSpeaker,
  type HeardCall,
  type SpeakerScript,
} from "../../test/fakes/fake-speech.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { mp3Frames } from "../../test/support/mp3-frames.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { type SynthesisFrame, type SynthesisLimits, synthesize } from "./synthesize.ts";
import { Mp3Encoders } from "./transcode.ts";

const longMs = 60_000;
const [one, two, three] = [Buffer.from("one"), Buffer.from("two"), Buffer.from("three")];

interface SceneOptions {
  first?: SpeakerScript;
  second?: SpeakerScript;
  limits?: Partial<SynthesisLimits>;
  endpoint?: EndpointChanges;
}

/** Two endpoints of one model, whose breakers open at the first failure. */
class Scene {
  readonly first: FakeSpeaker;
  readonly second: FakeSpeaker;
  readonly controller = new AbortController();
  readonly logged: Record<string, unknown>[] = [];
  readonly health = new EndpointHealth({ clock, breaker: { failuresToOpen: 1, openMs: longMs } });
  readonly encoders = new Mp3Encoders();
  readonly paid = new FakePaidRequests();
  readonly #options: SceneOptions;

  constructor(options: SceneOptions = {}) {
    this.#options = options;
    this.first = new FakeSpeaker(options.first);
    this.second = new FakeSpeaker(options.second);
  }

  speak(changes: Partial<SpeechRequest> = {}): GenerationFrames<SynthesisFrame> {
    const { endpoint, limits } = this.#options;
    const { health, encoders, paid } = this;
    const speakers = { first: this.first, second: this.second };
    const dependencies = speechDependencies(speakers, { endpoint, limits, health, encoders, paid });
    const request = speechRequest({ format: "mp3", ...changes });
    const destination = { write: (line: string) => void this.logged.push(JSON.parse(line)) };
    const log = createLog({ name: "test", level: "trace", destination });
    return synthesize(request, someAttribution, dependencies, this.controller.signal, log);
  }

  /** The first endpoint's only call. */
  heard(): HeardCall {
    const [call, ...others] = this.first.heard;
    if (call === undefined || others.length > 0) throw new Error("not called once");
    return call;
  }

  /** Whether the first endpoint's breaker is open. */
  get failureCounted(): boolean {
    return this.health.read("endpoint-of-first").retryAfterMs > 0;
  }
}

function words(frames: readonly SynthesisFrame[]): string[] {
  return frames.map((frame) => (frame.kind === "audio" ? Buffer.from(frame.bytes).toString() : frame.kind));
}

/** Takes as many frames. */
async function take(frames: GenerationFrames<SynthesisFrame>, count: number): Promise<SynthesisFrame[]> {
  const taken: SynthesisFrame[] = [];
  while (taken.length < count) {
    const next = await frames.next();
    if (next.done) throw new Error(`ended after ${taken.length} frames`);
    taken.push(next.value);
  }
  return taken;
}

/** The error that the next frame is instead. */
async function failure(frames: GenerationFrames<SynthesisFrame>): Promise<DomainError> {
  const result = await frames.next().catch((thrown: unknown) => thrown);
  if (result instanceof DomainError) return result;
  throw new Error("did not fail as it should", { cause: result });
}

const failed = (kind: ProviderErrorKind, options: { status?: number; retryAfterMs?: number } = {}) =>
  new ProviderError(kind, "our words", {
    cause: new Error("the upstream's words about a secret text"),
    ...options,
  });

afterEach(() => {
  vi.useRealTimers();
});

describe("an answer", () => {
  test("is its start, the audio as it comes, and its end", async () => {
    const scene = new Scene({ first: { audio: [one, two], sampleRateHz: 16_000 } });
    const frames = await Array.fromAsync(scene.speak({ speed: 9, voice: "zoe" }));
    expect(words(frames)).toEqual(["started", "one", "two", "finished"]);
    expect(frames[0]).toMatchObject({
      format: "mp3",
      sampleRateHz: 16_000,
      channels: 1,
      ignoredParameters: [],
    });
    expect(frames[0]).toMatchObject({
      endpoint: { id: "endpoint-of-first", permaslug: "acme/voice-2030-01-01" },
    });
    expect(frames[0]).toMatchObject({ generationId: expect.stringMatching(/^gen-tts-[0-9a-f-]{36}$/) });
    expect(frames.at(-1)).toEqual({
      kind: "finished",
      inputCharacters: 7n,
      promptTokens: 0n,
      completionTokens: 0n,
      costNanoUsd: 0n,
    });
    expect(scene.heard()).toMatchObject({
      call: { voice: "zoe", speed: 2, input: "Hello 😀" },
      connection: { baseUrl: "http://first.test", apiKey: "" },
      ended: true,
    });
    expect(scene.second.heard).toEqual([]);
    expect(scene.logged).toEqual([]);
  });

  test("has an id of its own each time", async () => {
    const started = async () => (await Array.fromAsync(new Scene().speak()))[0];
    expect(await started()).not.toEqual(await started());
  });

  test("leaves nothing behind: no listener, no work, and what is known of the endpoint's speed", async () => {
    const scene = new Scene({ first: { audio: [one] } });
    await Array.fromAsync(scene.speak());
    expect(getEventListeners(scene.controller.signal, "abort")).toEqual([]);
    scene.controller.abort();
    expect(scene.heard().signal.aborted).toBe(false);
    const reading = scene.health.read("endpoint-of-first");
    expect(reading.unitsPerSecond).toBeGreaterThan(0);
    expect(reading.firstOutputMs).toBeGreaterThanOrEqual(0);
  });

  test("does not begin before the first audio", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<undefined>();
    const scene = new Scene({ first: { audio: [gate, one] } });
    const frames = scene.speak();
    let begun = false;
    const first = frames.next().then((next) => {
      begun = true;
      return next;
    });
    await waitUntil(() => scene.first.heard.length === 1);
    expect(begun).toBe(false);
    open(undefined);
    expect((await first).value).toMatchObject({ kind: "started" });
    await frames.return();
  });

  test("comes at its consumer's pace: no chunk is asked for before the one before it was taken", async () => {
    const scene = new Scene({ first: { audio: [one, two, three] } });
    const frames = scene.speak();
    const pulled: number[] = [];
    for await (const _ of frames) pulled.push(scene.heard().pulled);
    expect(pulled).toEqual([1, 1, 2, 3, 3]);
  });

  test("has large chunks in frames of at most 256 KiB, in order", async () => {
    const large = Buffer.from(Uint8Array.from({ length: 600 * 1024 }, (_, index) => (index >> 9) & 0xff));
    const frames = await Array.fromAsync(new Scene({ first: { audio: [large, one, large] } }).speak());
    const audio = frames.flatMap((frame) => (frame.kind === "audio" ? [frame.bytes] : []));
    const lengths = [256 * 1024, 256 * 1024, 88 * 1024];
    expect(audio.map(({ length }) => length)).toEqual([...lengths, 3, ...lengths]);
    expect(Buffer.concat(audio).equals(Buffer.concat([large, one, large]))).toBe(true);
  });
});

describe("an mp3 made from pcm", () => {
  const speech = { formats: ["pcm"] } as const;
  const pcm = Buffer.alloc(48_000);
  const scene = (audio: SpeakerScript["audio"] = [pcm]) =>
    new Scene({ endpoint: { speech }, first: { audio } });

  test("is whole, says what it is, and gives its encoder back", async () => {
    const spoken = scene();
    const frames = await Array.fromAsync(spoken.speak());
    expect(frames[0]).toMatchObject({ format: "mp3", sampleRateHz: 24_000, channels: 1 });
    const audio = frames.flatMap((frame) => (frame.kind === "audio" ? [frame.bytes] : []));
    expect(mp3Frames(Buffer.concat(audio)).length).toBeGreaterThan(40);
    expect([spoken.heard().call.format, spoken.encoders.idle]).toEqual(["pcm", 1]);
  });

  test("gives its encoder back and ends the upstream when its consumer leaves", async () => {
    const left = scene([pcm, "silence"]);
    const frames = left.speak();
    await take(frames, 2);
    await frames.return();
    await waitUntil(() => left.heard().ended && left.encoders.idle === 1);
    expect(left.heard().signal.aborted).toBe(true);
  });

  test("breaks off where its source does, and gives its encoder back", async () => {
    const broken = scene([pcm, failed("network")]);
    await expect(Array.fromAsync(broken.speak())).rejects.toMatchObject({
      reason: ErrorReason.PROVIDER_FAILED,
    });
    expect(broken.encoders.idle).toBe(1);
  });
});

describe("before the first audio", () => {
  test.for<[string, SpeakerScript]>([
    ["its failure", { before: [failed("upstream", { status: 500 })] }],
    ["its overload", { before: [failed("overloaded", { status: 429 })] }],
    ["its refusal of our credentials", { before: [failed("credentials", { status: 401 })] }],
    ["a broken connection", { audio: [failed("network")] }],
    ["an answer without audio", { audio: [] }],
  ])("the next endpoint is tried after %s", async ([, first]) => {
    const scene = new Scene({ first, second: { audio: [two] } });
    const frames = await Array.fromAsync(scene.speak());
    expect(words(frames)).toEqual(["started", "two", "finished"]);
    expect(frames[0]).toMatchObject({ endpoint: { providerSlug: "second" } });
    expect([scene.first.heard.length, scene.second.heard.length]).toEqual([1, 1]);
    expect(scene.heard().signal.aborted).toBe(true);
    expect(scene.failureCounted).toBe(true);
    expect(scene.logged).toMatchObject([{ msg: "attempt failed", provider: "first", level: "warn" }]);
  });

  test.for([
    ["invalid_request", ErrorReason.PROVIDER_FAILED],
    ["content_policy", ErrorReason.CONTENT_POLICY],
    ["nothing_to_speak", ErrorReason.NOTHING_TO_SPEAK],
  ] as const)("%s is final", async ([kind, reason]) => {
    const scene = new Scene({ first: { before: [failed(kind, { status: 400 })] } });
    const error = await failure(scene.speak());
    expect(error.reason).toBe(reason);
    expect(error.attempts).toEqual([
      { providerName: "FIRST", endpointId: "endpoint-of-first", providerStatus: 400, reason },
    ]);
    expect([scene.second.heard, scene.failureCounted]).toEqual([[], false]);
  });

  test("a failure of all endpoints names them all, and the generation", async () => {
    const scene = new Scene({
      first: { before: [failed("upstream", { status: 502 })] },
      second: { before: [failed("overloaded", { status: 429, retryAfterMs: 2_000 })] },
    });
    const error = await failure(scene.speak());
    expect(error.reason).toBe(ErrorReason.PROVIDER_FAILED);
    expect(error.attempts.map(({ providerName, providerStatus }) => [providerName, providerStatus])).toEqual([
      ["FIRST", 502],
      ["SECOND", 429],
    ]);
    expect(error.generationId).toMatch(/^gen-tts-/);
  });

  test("a bug in an adapter is internal, and no other endpoint is tried", async () => {
    const scene = new Scene({ first: { before: [new TypeError("a bug")] } });
    const error = await failure(scene.speak());
    expect([error.reason, error.message]).toEqual([ErrorReason.INTERNAL, "internal error"]);
    expect(scene.second.heard).toEqual([]);
    expect(scene.logged).toMatchObject([{ level: "error", err: { type: "TypeError" } }]);
  });

  test.for<[string, SpeakerScript]>([
    ["accepts nothing", { before: ["silence"] }],
    ["says nothing", { audio: ["silence"] }],
  ])("the next endpoint is tried when one %s for too long", async ([, first]) => {
    const scene = new Scene({ first, second: { audio: [two] }, limits: { firstByteTimeoutMs: 20 } });
    expect(words(await Array.fromAsync(scene.speak()))).toEqual(["started", "two", "finished"]);
    expect(scene.heard().signal.aborted).toBe(true);
    expect(scene.logged).toMatchObject([{ reason: "timed_out", provider: "first" }]);
  });

  test("audio of an endpoint that was given up is thrown away when it comes after all", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<undefined>();
    const first = { audio: [gate.then(() => one), two] };
    const scene = new Scene({ first, second: { audio: [two] }, limits: { firstByteTimeoutMs: 20 } });
    expect(words(await Array.fromAsync(scene.speak()))).toEqual(["started", "two", "finished"]);
    expect(scene.heard().ended).toBe(false);
    open(undefined);
    await waitUntil(() => scene.heard().ended);
    expect(scene.heard().pulled).toBe(1);
  });

  test("an end of all time is answered as such", async () => {
    const scene = new Scene({ first: { before: ["silence"] }, limits: { timeoutMs: 20 } });
    const error = await failure(scene.speak());
    expect([error.reason, scene.second.heard]).toEqual([ErrorReason.TIMED_OUT, []]);
    expect(error.attempts).toMatchObject([
      { reason: ErrorReason.TIMED_OUT, endpointId: "endpoint-of-first" },
    ]);
    expect(error.generationId).toMatch(/^gen-tts-/);
    expect(scene.heard().signal.aborted).toBe(true);
  });

  test("a caller that leaves ends an attempt that was not sent, which is nobody's failure", async () => {
    const scene = new Scene({ first: { audio: ["silence"], sent: false } });
    const next = failure(scene.speak());
    await waitUntil(() => scene.first.heard.length === 1);
    scene.controller.abort();
    expect(scene.heard().signal.aborted).toBe(true);
    expect((await next).reason).toBe(ErrorReason.CANCELLED);
    await waitUntil(() => scene.heard().ended);
    expect([scene.second.heard, scene.failureCounted, scene.logged]).toEqual([[], false, []]);
  });

  test("a caller that has left already reaches nobody", async () => {
    const scene = new Scene();
    scene.controller.abort();
    expect((await failure(scene.speak())).reason).toBe(ErrorReason.CANCELLED);
    expect([scene.first.heard, scene.second.heard]).toEqual([[], []]);
  });

  test("a request that no endpoint can serve is refused before there is a generation", async () => {
    const error = await failure(new Scene().speak({ input: "x".repeat(101) }));
    expect([error.reason, error.generationId]).toEqual([ErrorReason.UNSUPPORTED_PARAMETER, ""]);
  });
});

describe("after the first audio", () => {
  test("a failure ends the answer, names the attempt and counts against the endpoint", async () => {
    const scene = new Scene({ first: { audio: [one, failed("network")] } });
    const frames = scene.speak();
    const taken = await take(frames, 2);
    const error = await failure(frames);
    expect(words(taken)).toEqual(["started", "one"]);
    expect(error.reason).toBe(ErrorReason.PROVIDER_FAILED);
    expect(taken[0]).toMatchObject({ generationId: error.generationId });
    expect(error.attempts).toEqual([
      {
        providerName: "FIRST",
        endpointId: "endpoint-of-first",
        providerStatus: 0,
        reason: ErrorReason.PROVIDER_FAILED,
      },
    ]);
    await waitUntil(() => scene.failureCounted);
    expect(scene.health.read("endpoint-of-first").unitsPerSecond).toBeUndefined();
    expect(scene.second.heard).toEqual([]);
    expect(scene.logged).toMatchObject([{ msg: "attempt failed", generation_id: error.generationId }]);
    expect(await frames.next()).toEqual({ done: true, value: undefined });
  });

  test("a failure names the attempts before it, too", async () => {
    const first = { before: [failed("overloaded", { status: 529 })] };
    const scene = new Scene({ first, second: { audio: [two, failed("bad_answer", { status: 200 })] } });
    const frames = scene.speak();
    await take(frames, 2);
    const { reason, attempts } = await failure(frames);
    expect(reason).toBe(ErrorReason.PROVIDER_BAD_ANSWER);
    expect(attempts.map((attempt) => [attempt.providerStatus, attempt.reason])).toEqual([
      [529, ErrorReason.PROVIDER_OVERLOADED],
      [200, ErrorReason.PROVIDER_BAD_ANSWER],
    ]);
    expect(scene.logged.map(({ provider }) => provider)).toEqual(["first", "second"]);
  });

  test("a silence that is too long is a time-out of the endpoint", async () => {
    const scene = new Scene({ first: { audio: [one, "silence"] }, limits: { idleTimeoutMs: 20 } });
    const frames = scene.speak();
    await take(frames, 2);
    const { reason, attempts } = await failure(frames);
    expect([reason, attempts.length]).toEqual([ErrorReason.TIMED_OUT, 1]);
    expect(scene.heard()).toMatchObject({ ended: true, signal: { aborted: true } });
    await waitUntil(() => scene.failureCounted);
    expect(scene.second.heard).toEqual([]);
  });

  test("the time in all ends the answer, too", async () => {
    vi.useFakeTimers();
    const scene = new Scene({ first: { audio: [one, "silence"] }, limits: { timeoutMs: 1_000 } });
    const frames = scene.speak();
    await take(frames, 2);
    const next = failure(frames);
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await next).reason).toBe(ErrorReason.TIMED_OUT);
    expect(scene.heard()).toMatchObject({ ended: true, signal: { aborted: true } });
  });

  test("the consumer's pauses are no silence of the upstream", async () => {
    vi.useFakeTimers();
    const { promise: gate, resolve: open } = Promise.withResolvers<undefined>();
    const first = { audio: [one, two, gate, three] };
    const scene = new Scene({ first, limits: { idleTimeoutMs: 1_000, timeoutMs: 3_600_000 } });
    const frames = scene.speak();
    for (let taken = 0; taken < 3; taken++) {
      await take(frames, 1);
      await vi.advanceTimersByTimeAsync(30_000);
    }
    const next = frames.next();
    await vi.advanceTimersByTimeAsync(999);
    expect(scene.heard().signal.aborted).toBe(false);
    open(undefined);
    expect((await next).value).toMatchObject({ kind: "audio", bytes: three });
    await vi.advanceTimersByTimeAsync(30_000);
    expect(words(await take(frames, 1))).toEqual(["finished"]);
  });

  test("a caller that leaves in mid-stream ends a provider that bills no cancelled work, which is nobody's failure", async () => {
    const scene = new Scene({ first: { audio: [one, "silence"] }, endpoint: { cancel: "free" } });
    const frames = scene.speak();
    await take(frames, 2);
    const next = failure(frames);
    scene.controller.abort();
    const error = await next;
    expect([error.reason, error.attempts]).toEqual([ErrorReason.CANCELLED, []]);
    expect(error.generationId).toMatch(/^gen-tts-/);
    expect(scene.heard().signal.aborted).toBe(true);
    await waitUntil(() => scene.heard().ended);
    expect([scene.failureCounted, scene.logged]).toEqual([false, []]);
  });

  test.for([1, 2])(
    "a caller that leaves while it holds frame %i ends such a provider at once",
    async (held) => {
      const scene = new Scene({ first: { audio: [one, two] }, endpoint: { cancel: "free" } });
      await take(scene.speak(), held);
      expect(scene.heard().signal.aborted).toBe(false);
      scene.controller.abort();
      expect(scene.heard().signal.aborted).toBe(true);
    },
  );

  test("the time in all ends the upstream also while the caller holds a frame", async () => {
    vi.useFakeTimers();
    const scene = new Scene({ first: { audio: [one, two] }, limits: { timeoutMs: 1_000 } });
    const frames = scene.speak();
    await take(frames, 2);
    await vi.advanceTimersByTimeAsync(999);
    expect(scene.heard().signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(scene.heard().signal.aborted).toBe(true);
    expect((await failure(frames)).reason).toBe(ErrorReason.TIMED_OUT);
    expect(scene.failureCounted).toBe(false);
  });

  test.for([1, 2])("a consumer that stops at frame %i ends such a provider", async (held) => {
    const scene = new Scene({ first: { audio: [one, "silence"] }, endpoint: { cancel: "free" } });
    const frames = scene.speak();
    await take(frames, held);
    await frames.return();
    expect(scene.heard().signal.aborted).toBe(true);
    await waitUntil(() => scene.heard().ended);
    expect(getEventListeners(scene.controller.signal, "abort")).toEqual([]);
    expect([scene.failureCounted, scene.logged]).toEqual([false, []]);
  });
});

test.for<[string, SpeakerScript]>([
  ["before", { before: [failed("upstream", { status: 500 })] }],
  ["after", { audio: [one, failed("upstream")] }],
])(
  "nothing of the upstream's words or the input leaves or is logged: failure %s the first audio",
  async ([, script]) => {
    const scene = new Scene({ first: script, second: script });
    const error = await Array.fromAsync(scene.speak({ input: "a private input" })).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(DomainError);
    expect(scene.logged.length).toBeGreaterThan(0);
    const { message, attempts, issues } = error;
    const left = JSON.stringify({ message, attempts, issues, logged: scene.logged });
    expect(left).toContain("endpoint-of-first");
    expect(left).not.toMatch(/secret text|upstream's words|private input/);
  },
);
