import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { CallLife } from "../../lib/rpc/call-life.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { Price, SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { ProviderError, type TokenUsage } from "../../providers/contract.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { FakeSpeaker, type SpeakerScript } from "../../test/fakes/fake-speech.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { synthesize } from "./synthesize.ts";

const longMs = 60_000;
const one = Buffer.from("one!");
const half = Buffer.from("1");
const failure = new ProviderError("upstream", "our words", { status: 500 });
const price = (billable: Price["billable"], nanoUsd: bigint, most?: bigint): Price => ({
  billable,
  nanoUsdPerMillion: nanoUsd * 1_000_000n,
  mostPerInputCharacter: most,
});
const byCharacter = [price("input_character", 1n)];
const byTokens = [price("input_text_token", 1n, 4n), price("output_audio_token", 10n, 8n)];

interface SceneOptions {
  readonly first?: SpeakerScript;
  readonly second?: SpeakerScript;
  readonly endpoint?: Partial<Pick<SpeechEndpoint, "cancel" | "prices">>;
  readonly timeoutMs?: number;
  readonly ownKeys?: Readonly<Record<string, string>>;
}

/** Two endpoints of one model, and a caller who can leave in either way. */
class Scene {
  readonly first: FakeSpeaker;
  readonly second: FakeSpeaker;
  readonly caller = new AbortController();
  readonly paid = new FakePaidRequests();
  readonly frames: ReturnType<typeof synthesize>;
  /** Whether the generation has ended. */
  ended = false;

  constructor({ first, second, endpoint, timeoutMs = longMs, ownKeys = {} }: SceneOptions = {}) {
    for (const [slug, secret] of Object.entries(ownKeys)) this.paid.ownKeysBySlug.set(slug, secret);
    this.first = new FakeSpeaker(first);
    this.second = new FakeSpeaker(second);
    const speakers = { first: this.first, second: this.second };
    const dependencies = speechDependencies(speakers, {
      endpoint: { prices: byCharacter, ...endpoint },
      limits: { timeoutMs },
      paid: this.paid,
    });
    this.frames = synthesize(speechRequest(), someAttribution, dependencies, this.caller.signal, silentLog);
    void this.frames.ended.then(() => {
      this.ended = true;
    });
  }

  /** Takes as many frames. */
  async take(count: number): Promise<void> {
    for (let taken = 0; taken < count; taken++) expect((await this.frames.next()).done).toBe(false);
  }

  /** Leaves while the next frame is awaited, or while nobody asks for one. */
  async leave(how: "waiting" | "resting" | "returning" = "waiting"): Promise<void> {
    const next = how === "waiting" ? this.frames.next() : undefined;
    if (how === "returning") await this.frames.return();
    else this.caller.abort();
    await next?.catch(() => undefined);
  }
}

/** Something that the upstream waits for, and how it goes on. */
function gate<T = undefined>() {
  return Promise.withResolvers<T>();
}

describe("a caller who leaves before anything was sent", () => {
  test("in the middle of the hold leaves no event, and the hold is released", async () => {
    const scene = new Scene();
    await scene.leave();
    await scene.frames.ended;
    expect([scene.paid.events.length, scene.paid.released.length]).toEqual([0, 1]);
    expect([...scene.first.heard, ...scene.second.heard]).toEqual([]);
  });

  test("while a request is being sent ends it, leaves no event, and the hold is released", async () => {
    const scene = new Scene({ first: { sent: false, before: ["silence"] } });
    await waitUntil(() => scene.first.heard.length === 1);
    await scene.leave();
    await scene.frames.ended;
    expect(scene.first.heard[0]?.signal.aborted).toBe(true);
    expect([scene.paid.events.length, scene.paid.released.length]).toEqual([0, 1]);
    expect(scene.second.heard).toEqual([]);
  });

  test("but after an attempt that had failed leaves that attempt's event", async () => {
    const scene = new Scene({ first: { before: [failure] }, second: { sent: false, before: ["silence"] } });
    await waitUntil(() => scene.second.heard.length === 1);
    await scene.leave();
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.CANCELLED,
      reason: "cancelled",
      cancelled: true,
      costNanoUsd: 0n,
      attempts: [{ outcome: Outcome.FAILED }, { outcome: Outcome.CANCELLED }],
    });
  });
});

describe("a caller who leaves once a request was sent whole", () => {
  test.for(["waiting", "resting", "returning"] as const)(
    "is charged as if he had stayed, by the first usable audio: %s",
    async (how) => {
      const accepted = gate();
      const scene = new Scene({ first: { before: [accepted.promise], audio: [half, one, "silence"] } });
      await waitUntil(() => scene.first.heard.length === 1);
      await scene.leave(how);
      expect(scene.first.heard[0]?.signal.aborted).toBe(false);
      expect([scene.ended, scene.paid.events.length]).toEqual([false, 0]);
      accepted.resolve(undefined);
      await scene.frames.ended;
      expect(scene.paid.event()).toMatchObject({
        outcome: Outcome.SUCCEEDED,
        reason: "",
        cancelled: true,
        costNanoUsd: 7n,
        attempts: [{ outcome: Outcome.SUCCEEDED }],
      });
      // What comes is known: the rest of the audio is nobody's.
      expect(scene.first.heard[0]?.signal.aborted).toBe(true);
      expect(getEventListeners(scene.caller.signal, "abort")).toEqual([]);
    },
  );

  test("and the upstream fails pays nothing, and no other is tried", async () => {
    const accepted = gate();
    const scene = new Scene({ first: { before: [accepted.promise, failure] } });
    await waitUntil(() => scene.first.heard.length === 1);
    await scene.leave();
    accepted.resolve(undefined);
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.FAILED,
      reason: "provider_failed",
      cancelled: true,
      costNanoUsd: 0n,
      attempts: [{ outcome: Outcome.FAILED, providerStatus: 500 }],
    });
    expect(scene.second.heard).toEqual([]);
  });

  test("and the audio breaks off before it can be used pays nothing", async () => {
    const more = gate<Uint8Array>();
    const scene = new Scene({ first: { audio: [half, more.promise, failure] } });
    await scene.take(2);
    await scene.leave();
    more.reject(failure);
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({ outcome: Outcome.FAILED, cancelled: true, costNanoUsd: 0n });
  });

  test("has its request end by its own time limit at the latest", async () => {
    const scene = new Scene({ first: { before: ["silence"] }, timeoutMs: 60 });
    await waitUntil(() => scene.first.heard.length === 1);
    await scene.leave();
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.FAILED,
      reason: "timed_out",
      cancelled: true,
    });
  });

  test.for(["waiting", "resting", "returning"] as const)(
    "after usable audio ends the upstream at once, and pays: %s",
    async (how) => {
      const scene = new Scene({ first: { audio: [one, "silence"] } });
      await scene.take(2);
      await scene.leave(how);
      await scene.frames.ended;
      expect(scene.first.heard[0]?.signal.aborted).toBe(true);
      expect(scene.paid.event()).toMatchObject({
        outcome: Outcome.SUCCEEDED,
        cancelled: true,
        costNanoUsd: 7n,
        attempts: [{ outcome: Outcome.SUCCEEDED }],
      });
    },
  );

  test("after the last byte, before the end, pays and has left", async () => {
    const scene = new Scene({ first: { audio: [one] } });
    await scene.take(2);
    await scene.leave("resting");
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      cancelled: true,
      costNanoUsd: 7n,
    });
  });

  test("holds what its call holds until the end", async () => {
    const accepted = gate();
    const scene = new Scene({ first: { before: [accepted.promise], audio: [one] } });
    const call = new CallLife();
    let isOver = false;
    call.whenOver(() => {
      isOver = true;
    });
    call.keepUntil(scene.frames.ended);
    await waitUntil(() => scene.first.heard.length === 1);
    await scene.leave();
    call.end();
    expect([isOver, scene.paid.running.count]).toEqual([false, 1]);
    accepted.resolve(undefined);
    await waitUntil(() => isOver);
    expect(scene.paid.running.count).toBe(0);
  });
});

describe("where the upstream bills tokens, a caller who leaves", () => {
  const usage: TokenUsage = { prompt: 3, completion: 11 };

  test.for([
    ["reports them", usage, 113n],
    ["reports none", undefined, 7n * 4n + 7n * 8n * 10n],
  ] as const)("amid the audio is charged at its end by an upstream that %s", async ([, reported, cost]) => {
    const more = gate<Uint8Array>();
    const first = { audio: [one, more.promise], ...(reported === undefined ? {} : { usage: reported }) };
    const scene = new Scene({ first, endpoint: { prices: byTokens } });
    await scene.take(2);
    await scene.leave();
    expect(scene.first.heard[0]?.signal.aborted).toBe(false);
    more.resolve(one);
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      cancelled: true,
      costNanoUsd: cost,
    });
    expect(scene.paid.doubts.map(({ kind }) => kind)).toEqual(reported === undefined ? ["missing"] : []);
  });
});

describe("where the vendor bills no cancelled work, a caller who leaves", () => {
  const endpoint = { cancel: "free" } as const;

  test("before there is audio ends it at once and pays nothing", async () => {
    const scene = new Scene({ first: { before: ["silence"] }, endpoint });
    await waitUntil(() => scene.first.heard.length === 1);
    await scene.leave();
    await scene.frames.ended;
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.CANCELLED,
      reason: "cancelled",
      cancelled: true,
      costNanoUsd: 0n,
      attempts: [{ outcome: Outcome.CANCELLED }],
    });
  });

  test("amid the audio ends it at once and pays for what was begun", async () => {
    const scene = new Scene({ first: { audio: [one, "silence"] }, endpoint });
    await scene.take(2);
    await scene.leave("resting");
    await scene.frames.ended;
    expect(scene.first.heard[0]?.signal.aborted).toBe(true);
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.CANCELLED,
      cancelled: true,
      costNanoUsd: 7n,
    });
  });
});

test("an own key that served a caller who left costs the fee", async () => {
  const accepted = gate();
  const script = { before: [accepted.promise], audio: [one] };
  const scene = new Scene({ first: script, ownKeys: { first: "own-secret" } });
  await waitUntil(() => scene.first.heard.length === 1);
  expect(scene.first.heard[0]?.connection.apiKey).toBe("own-secret");
  await scene.leave();
  accepted.resolve(undefined);
  await scene.frames.ended;
  expect(scene.paid.event()).toMatchObject({
    cancelled: true,
    byok: true,
    listPriceNanoUsd: 7n,
    costNanoUsd: 1n,
  });
});
