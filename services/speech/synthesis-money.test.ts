import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ReservationOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { ProviderPreferencesSchema } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { systemClock as clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { ProviderError } from "../../providers/contract.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { FakePaidRequests, failureOf, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import {
  catalogOf,
  type EndpointChanges,
  FakeSpeaker,
  fakeProviders,
  type SpeakerScript,
  speechEndpoint,
} from "../../test/fakes/fake-speech.ts";
import { speechDependencies, speechRequest } from "../../test/fakes/speech-scene.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import type { SpeechRequest } from "./speech-request.ts";
import { type SynthesisFrame, synthesize } from "./synthesize.ts";
import { Mp3Encoders } from "./transcode.ts";

const longMs = 60_000;
const [one, two] = [Buffer.from("one!"), Buffer.from("two!")];
const failure = new ProviderError("upstream", "our words", { status: 500 });

interface SceneOptions {
  readonly first?: SpeakerScript;
  readonly second?: SpeakerScript;
  readonly timeoutMs?: number;
}

/** Two endpoints of one model, the second twice as dear: 2 nano-USD a character against 1. */
class Scene {
  readonly first: FakeSpeaker;
  readonly second: FakeSpeaker;
  readonly controller = new AbortController();
  readonly paid = new FakePaidRequests();
  readonly health = new EndpointHealth({ clock, breaker: { failuresToOpen: 1, openMs: longMs } });
  readonly #timeoutMs: number;

  constructor({ first, second, timeoutMs = longMs }: SceneOptions = {}) {
    this.first = new FakeSpeaker(first);
    this.second = new FakeSpeaker(second);
    this.#timeoutMs = timeoutMs;
  }

  speak(): AsyncIterableIterator<SynthesisFrame, void> {
    const prices = (nanoUsd: bigint) => [
      {
        billable: "input_character" as const,
        nanoUsdPerMillion: nanoUsd * 1_000_000n,
        mostPerInputCharacter: undefined,
      },
    ];
    const speakers = { first: this.first, second: this.second };
    const dependencies = speechDependencies(speakers, {
      catalog: catalogOf(
        speechEndpoint({ providerSlug: "first", prices: prices(1n) }),
        speechEndpoint({ providerSlug: "second", prices: prices(2n) }),
      ),
      health: this.health,
      limits: { timeoutMs: this.#timeoutMs },
      paid: this.paid,
    });
    const attribution = { ...someAttribution, user: "u-1", sessionId: "s-1", trace: { trace_id: "t-1" } };
    return synthesize(speechRequest(), attribution, dependencies, this.controller.signal, silentLog);
  }
}

describe("a synthesis", () => {
  test("holds the dearest candidate's price before anything is sent, and is charged what the winner costs", async () => {
    const scene = new Scene({ first: { audio: [one, two] } });
    const frames = await Array.fromAsync(scene.speak());
    expect(scene.paid.reservations).toMatchObject([
      { amountNanoUsd: 14n, byokAmountNanoUsd: 0n, draft: { endpointId: "endpoint-of-first" } },
    ]);
    expect(frames.at(-1)).toMatchObject({ kind: "finished", inputCharacters: 7n, costNanoUsd: 7n });
    expect(scene.paid.event()).toMatchObject({
      revision: 1,
      api: Api.SPEECH,
      outcome: Outcome.SUCCEEDED,
      model: "acme/voice",
      endpointId: "endpoint-of-first",
      costNanoUsd: 7n,
      listPriceNanoUsd: 7n,
      units: { inputCharacters: 7n },
      endUser: "u-1",
      sessionId: "s-1",
      trace: { trace_id: "t-1" },
      streamed: true,
      cancelled: false,
      attempts: [{ outcome: Outcome.SUCCEEDED, reason: "", providerStatus: 0 }],
    });
    expect(scene.paid.event().firstByteAt).toBeDefined();
  });

  test("that fell back names every attempt and is charged by the one that served", async () => {
    const scene = new Scene({ first: { before: [failure] }, second: { audio: [one] } });
    await Array.fromAsync(scene.speak());
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.SUCCEEDED,
      endpointId: "endpoint-of-second",
      costNanoUsd: 14n,
      attempts: [
        { outcome: Outcome.FAILED, reason: "provider_failed", providerStatus: 500, providerSlug: "first" },
        { outcome: Outcome.SUCCEEDED, providerSlug: "second" },
      ],
    });
  });

  test("that failed everywhere costs nothing and leaves its event", async () => {
    const scene = new Scene({ first: { before: [failure] }, second: { before: [failure] } });
    expect(await failureOf(scene.speak())).toBe(ErrorReason.PROVIDER_FAILED);
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.FAILED,
      reason: "provider_failed",
      endpointId: "endpoint-of-second",
      costNanoUsd: 0n,
      attempts: [{ providerSlug: "first" }, { providerSlug: "second" }],
    });
  });

  test("that broke off after usable audio is charged for the whole input", async () => {
    const scene = new Scene({ first: { audio: [one, failure] } });
    expect(await failureOf(scene.speak())).toBe(ErrorReason.PROVIDER_FAILED);
    expect(scene.paid.event()).toMatchObject({
      outcome: Outcome.FAILED,
      costNanoUsd: 7n,
      attempts: [{ outcome: Outcome.FAILED, providerStatus: 500 }],
    });
  });

  test("that broke off before one whole sample costs nothing", async () => {
    const scene = new Scene({ first: { audio: [Buffer.from("1"), failure] } });
    await failureOf(scene.speak());
    expect(scene.paid.event()).toMatchObject({ outcome: Outcome.FAILED, costNanoUsd: 0n });
  });

  test("waits with its end, and with nothing before it, until its event is safe", async () => {
    const scene = new Scene({ first: { audio: [one, two] } });
    const stored = Promise.withResolvers<boolean>();
    scene.paid.stored = stored.promise;
    const frames = scene.speak();
    for (const kind of ["started", "audio", "audio"])
      expect((await frames.next()).value).toMatchObject({ kind });
    let hasEnded = false;
    const last = frames.next().finally(() => {
      hasEnded = true;
    });
    await waitUntil(() => scene.paid.events.length === 1);
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    expect(hasEnded).toBe(false);
    stored.resolve(true);
    expect((await last).value).toMatchObject({ kind: "finished" });
  });
});

describe("a refused hold", () => {
  test.for([
    [ReservationOutcome.CREDITS_EXHAUSTED, ErrorReason.CREDITS_EXHAUSTED],
    [ReservationOutcome.KEY_LIMIT_REACHED, ErrorReason.KEY_LIMIT_REACHED],
  ] as const)("of outcome %s reaches no provider and leaves nothing", async ([outcome, reason]) => {
    const scene = new Scene();
    scene.paid.outcome = outcome;
    expect(await failureOf(scene.speak())).toBe(reason);
    expect([scene.first.heard, scene.paid.events, scene.paid.released]).toEqual([[], [], []]);
  });

  test("of unknown outcome is released and reaches no provider", async () => {
    const scene = new Scene();
    scene.paid.outcome = new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away");
    expect(await failureOf(scene.speak())).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    expect([scene.first.heard.length, scene.paid.released.length]).toEqual([0, 1]);
  });
});

test("a request that runs out of time says so in its event", async () => {
  const scene = new Scene({ first: { audio: [one, "silence"] }, timeoutMs: 30 });
  expect(await failureOf(scene.speak())).toBe(ErrorReason.TIMED_OUT);
  expect(scene.paid.event()).toMatchObject({
    outcome: Outcome.FAILED,
    reason: "timed_out",
    cancelled: false,
  });
});

describe("an own key", () => {
  test("goes first and costs the fee; its list price is recorded", async () => {
    const scene = new Scene({ second: { audio: [one] } });
    scene.paid.ownKeysBySlug.set("second", "own-secret");
    await Array.fromAsync(scene.speak());
    expect(scene.second.heard).toMatchObject([{ connection: { apiKey: "own-secret" } }]);
    expect(scene.first.heard).toEqual([]);
    // The dearest way: the operator's key at the second endpoint. By the own key 5 % of 14, rounded up.
    expect(scene.paid.reservations).toMatchObject([{ amountNanoUsd: 14n, byokAmountNanoUsd: 14n }]);
    expect(scene.paid.event()).toMatchObject({
      byok: true,
      costNanoUsd: 1n,
      listPriceNanoUsd: 14n,
      attempts: [{ byok: true }],
    });
  });

  test("that the provider refuses falls back to the operator's, and opens no breaker", async () => {
    const refused = new ProviderError("credentials", "our words", { status: 401 });
    const scene = new Scene({ second: { before: [refused] }, first: { audio: [one] } });
    scene.paid.ownKeysBySlug.set("second", "own-secret");
    await Array.fromAsync(scene.speak());
    expect(scene.paid.event()).toMatchObject({
      byok: false,
      costNanoUsd: 7n,
      attempts: [
        { byok: true, reason: "provider_credentials" },
        { byok: false, outcome: Outcome.SUCCEEDED },
      ],
    });
    for (const id of ["endpoint-of-second", "endpoint-of-second by own keys"]) {
      expect(scene.health.read(id).retryAfterMs).toBe(0);
    }
  });
});

const shortRequest = {
  input: "Hello.",
  model: "acme/voice",
  voice: undefined,
  format: "pcm" as const,
  speed: undefined,
  preferences: undefined,
};

test("an account that is nearly empty can't have more spoken than it can pay, whatever else is read", async () => {
  const price = { nanoUsdPerMillion: 1_000_000n, mostPerInputCharacter: 4n };
  const endpoint = speechEndpoint({
    prices: [
      { billable: "input_text_token", ...price },
      { billable: "output_audio_token", ...price },
    ],
    passthrough: ["tone"],
    speech: { instructions: true },
  });
  const speaker = new FakeSpeaker({ audio: [one], usage: { prompt: 24, completion: 24 } });
  const paid = new FakePaidRequests();
  const holds = {
    ...paid.holds,
    // What six characters cost at most, read and spoken.
    reserve: async (reservation: Parameters<typeof paid.holds.reserve>[0]) =>
      reservation.amountNanoUsd <= 48n
        ? paid.holds.reserve(reservation)
        : ReservationOutcome.CREDITS_EXHAUSTED,
  };
  const dependencies = {
    catalog: catalogOf(endpoint),
    providers: fakeProviders({ acme: speaker }),
    health: new EndpointHealth({ clock }),
    limits: { firstByteTimeoutMs: longMs, idleTimeoutMs: longMs, timeoutMs: longMs },
    encoders: new Mp3Encoders(),
    clock,
    random: () => 0.5,
    paid: Object.assign(Object.create(paid), { holds }) as FakePaidRequests,
  };
  const speak = (changes: object) =>
    synthesize(
      { ...shortRequest, ...changes },
      someAttribution,
      dependencies,
      new AbortController().signal,
      silentLog,
    );
  expect(await failureOf(speak({ instructions: "x" }))).toBe(ErrorReason.CREDITS_EXHAUSTED);
  const preferences = create(ProviderPreferencesSchema, { options: { acme: { tone: "x" } } });
  expect(await failureOf(speak({ preferences }))).toBe(ErrorReason.CREDITS_EXHAUSTED);
  expect(speaker.heard).toEqual([]);
  await Array.fromAsync(speak({}));
  expect(paid.event().costNanoUsd).toBe(48n);
});

describe("a price", () => {
  const pcmSecond = new Uint8Array(48_000);
  const none = { mostPerInputCharacter: undefined };
  const scene = (endpoint: EndpointChanges, script: SpeakerScript) => {
    const speaker = new FakeSpeaker(script);
    const paid = new FakePaidRequests();
    const dependencies = speechDependencies(
      { acme: speaker },
      { catalog: catalogOf(speechEndpoint(endpoint)), paid },
    );
    const speak = (changes: Partial<SpeechRequest> = {}) => {
      const request = { ...speechRequest(), format: "pcm" as const, ...changes };
      const { signal } = new AbortController();
      return Array.fromAsync(synthesize(request, someAttribution, dependencies, signal, silentLog));
    };
    return { paid, speak };
  };

  test("by the second counts what was handed out, and holds the longest that the text may come to", async () => {
    const prices = [
      {
        billable: "output_audio_second",
        nanoUsdPerMillion: 1_000_000_000n,
        mostPerInputCharacter: 500n,
      } as const,
    ];
    const { paid, speak } = scene(
      { prices },
      { audio: [pcmSecond, pcmSecond, pcmSecond.subarray(0, 24_000)] },
    );
    await speak({ input: "Hello." });
    // Half a second a character and one for the shortest; then two seconds and a half.
    expect(paid.reservations).toMatchObject([{ amountNanoUsd: 4000n }]);
    expect(paid.event()).toMatchObject({ costNanoUsd: 2500n });
  });

  test("by the second counts mp3 by its frames, also where it is made here", async () => {
    const prices = [
      {
        billable: "output_audio_second",
        nanoUsdPerMillion: 1_000_000_000n,
        mostPerInputCharacter: 500n,
      } as const,
    ];
    const speech = { formats: ["wav"] as const };
    const { paid, speak } = scene({ prices, speech }, { audio: [pcmSecond, pcmSecond] });
    await speak({ format: "mp3" });
    const { costNanoUsd } = paid.event();
    expect(costNanoUsd).toBeGreaterThanOrEqual(2000n);
    expect(costNanoUsd).toBeLessThan(2150n);
  });

  test("by the byte counts UTF-8", async () => {
    const prices = [{ billable: "input_utf8_byte", nanoUsdPerMillion: 1_000_000n, ...none } as const];
    const { paid, speak } = scene({ prices }, { audio: [pcmSecond] });
    await speak({ input: "Grüße" });
    expect(paid.reservations).toMatchObject([{ amountNanoUsd: 7n }]);
    expect(paid.event()).toMatchObject({ costNanoUsd: 7n });
  });

  test.for([
    ["its own figure", { costUsd: 0.000000003 }, 3n],
    ["nothing: then it is the bound", {}, 7n],
  ] as const)("by what the vendor reports is %s", async ([, report, costNanoUsd]) => {
    const prices = [{ billable: "input_character", nanoUsdPerMillion: 1_000_000n, ...none } as const];
    const { paid, speak } = scene({ prices, billedBy: "reported_cost" }, { audio: [pcmSecond], report });
    await speak({ input: "Hello.." });
    expect(paid.event()).toMatchObject({ costNanoUsd, listPriceNanoUsd: costNanoUsd });
  });
});

test.for([
  ["characters and cost", { characters: 9, costUsd: 0.5 }, { characters: 9n, costNanoUsd: 500_000_000n }],
  ["characters alone", { characters: 0 }, { characters: 0n }],
  ["nothing", {}, undefined],
  ["what can't be", { characters: -1, costUsd: Number.NaN }, undefined],
] as const)("what a vendor reports of its billing is kept with the record: %s", async ([, report, kept]) => {
  const scene = new Scene({ first: { audio: [one], report } });
  await Array.fromAsync(scene.speak());
  const { providerReport, costNanoUsd } = scene.paid.event();
  expect(costNanoUsd).toBe(7n);
  expect(providerReport === undefined ? undefined : { ...providerReport }).toEqual(
    kept === undefined ? undefined : expect.objectContaining(kept),
  );
});
