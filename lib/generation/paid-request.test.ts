import { describe, expect, test } from "vitest";
import { ReservationOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { FakePaidRequests, someAttribution } from "../../test/fakes/fake-paid-requests.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { PaidRequest, type PaidRequestEnd } from "./paid-request.ts";

const endpoint = {
  id: "00000000-0000-4000-8000-00000000000e",
  permaslug: "acme/voice-2030-01-01",
  providerSlug: "acme",
  providerName: "ACME",
};
const noTokens = {
  prompt: 0n,
  completion: 0n,
  reasoning: 0n,
  cachedPrompt: 0n,
  imagePrompt: 0n,
  imageCompletion: 0n,
  audioCompletion: 0n,
};
const succeeded: NonNullable<PaidRequestEnd> = {
  outcome: Outcome.SUCCEEDED,
  reason: undefined,
  endpoint: { ...endpoint, id: "00000000-0000-4000-8000-00000000000f" },
  attempts: [],
  firstOutputAtMs: undefined,
  tokens: noTokens,
  units: { inputCharacters: 5n },
  byok: false,
  costNanoUsd: 7n,
  listPriceNanoUsd: 7n,
  cancelled: false,
  streamed: true,
};
const accountId = someAttribution.principal.accountId;

async function begin(paid: FakePaidRequests) {
  return PaidRequest.begin(
    {
      api: Api.SPEECH,
      generationId: "gen-tts-1",
      model: "acme/voice",
      attribution: { ...someAttribution, user: "u", sessionId: "s", trace: { trace_id: "t" } },
      endpoint,
      amountNanoUsd: 10n,
      byokAmountNanoUsd: 3n,
      deadlineMs: 1_900_000_000_000.5,
    },
    paid,
  );
}

const failureOf = (promise: Promise<unknown>): Promise<DomainError> =>
  promise.then(
    () => Promise.reject(new Error("did not fail")),
    (thrown) => (thrown instanceof DomainError ? thrown : Promise.reject(thrown)),
  );

describe("a beginning", () => {
  test("holds the most it can cost, with what a lost event would say", async () => {
    const paid = new FakePaidRequests();
    await begin(paid);
    expect(paid.reservations).toMatchObject([
      {
        generationId: "gen-tts-1",
        amountNanoUsd: 10n,
        byokAmountNanoUsd: 3n,
        deadline: { seconds: 1_900_000_000n, nanos: 1_000_000 },
        draft: {
          eventId: "gen-tts-1",
          revision: 0,
          outcome: Outcome.LOST,
          accountId,
          keyHash: someAttribution.principal.keyHash,
          endUser: "u",
          sessionId: "s",
          trace: { trace_id: "t" },
          endpointId: endpoint.id,
          modelPermaslug: endpoint.permaslug,
          providerSlug: "acme",
          costNanoUsd: 0n,
        },
      },
    ]);
    expect(paid.reservations[0]?.draft?.endedAt).toBeUndefined();
  });

  test.for([
    [ReservationOutcome.CREDITS_EXHAUSTED, ErrorReason.CREDITS_EXHAUSTED],
    [ReservationOutcome.KEY_LIMIT_REACHED, ErrorReason.KEY_LIMIT_REACHED],
    [ReservationOutcome.TOO_LATE, ErrorReason.TIMED_OUT],
    [ReservationOutcome.CLOSED, ErrorReason.INTERNAL],
  ] as const)("refused with %s is an error and releases nothing", async ([outcome, reason]) => {
    const paid = new FakePaidRequests();
    paid.outcome = outcome;
    expect((await failureOf(begin(paid))).reason).toBe(reason);
    expect([paid.released, paid.events]).toEqual([[], []]);
  });

  test("of unknown outcome is released and fails", async () => {
    const paid = new FakePaidRequests();
    paid.outcome = new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away");
    expect((await failureOf(begin(paid))).reason).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    expect(paid.released).toEqual([{ generationId: "gen-tts-1", accountId }]);
  });

  test("is refused before anything is asked when too many events wait", async () => {
    const paid = new FakePaidRequests();
    paid.hasRoom = false;
    expect((await failureOf(begin(paid))).reason).toBe(ErrorReason.SERVICE_UNAVAILABLE);
    expect([paid.reservations, paid.released]).toEqual([[], []]);
  });
});

describe("an end", () => {
  test("leaves one event, whoever ends it again", async () => {
    const clock = new ManualClock();
    const paid = new FakePaidRequests(clock);
    const request = await begin(paid);
    clock.advance(1500);
    await request.end(succeeded);
    await request.end({ ...succeeded, costNanoUsd: 99n });
    await request.end(undefined);
    const event = paid.event();
    expect(event).toMatchObject({
      eventId: "gen-tts-1",
      revision: 1,
      outcome: Outcome.SUCCEEDED,
      reason: "",
      endpointId: "00000000-0000-4000-8000-00000000000f",
      costNanoUsd: 7n,
      units: { inputCharacters: 5n, outputImages: 0n },
      requestId: "req-1",
      keyName: "a key",
    });
    const { startedAt, endedAt } = event;
    const tookMs =
      Number((endedAt?.seconds ?? 0n) - (startedAt?.seconds ?? 0n)) * 1000 +
      ((endedAt?.nanos ?? 0) - (startedAt?.nanos ?? 0)) / 1e6;
    expect(tookMs).toBe(1500);
    expect(paid.released).toEqual([]);
  });

  test("without an attempt releases and leaves no event", async () => {
    const paid = new FakePaidRequests();
    const request = await begin(paid);
    await request.end(undefined);
    expect([paid.events, paid.released]).toEqual([[], [{ generationId: "gen-tts-1", accountId }]]);
  });

  test("waits until its event is safe", async () => {
    const paid = new FakePaidRequests();
    const stored = Promise.withResolvers<boolean>();
    paid.stored = stored.promise;
    const request = await begin(paid);
    let ended = false;
    const ending = request.end(succeeded).then(() => {
      ended = true;
    });
    await new Promise(setImmediate);
    expect(ended).toBe(false);
    stored.resolve(true);
    await ending;
  });

  test("never lies before its beginning, also when the clock steps back", async () => {
    const clock = new ManualClock();
    const paid = new FakePaidRequests(clock);
    const request = await begin(paid);
    clock.advance(-5000);
    await request.end(succeeded);
    const { startedAt, endedAt } = paid.event();
    expect(endedAt).toEqual(startedAt);
  });
});
