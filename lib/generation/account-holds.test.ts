import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  ReservationOutcome,
  ReservationSchema,
  SettleOutcome,
} from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { GenerationEventSchema } from "../../gen/media/event/v1/generation_event_pb.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLocalTransport, createRpcClient } from "../rpc/client.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { createLog } from "../runtime/log.ts";
import { AccountHolds, type AccountHoldsOptions } from "./account-holds.ts";

/** Answers what the ids ask for, and fails while the test says so. */
class FakeAccount {
  readonly calls: { rpc: string; ids: string[] }[] = [];
  failure: DomainError | undefined;

  transport() {
    return createLocalTransport((router) =>
      router.service(AccountInternalService, {
        reserve: ({ reservations }) => ({
          outcomes: this.#hear(
            "reserve",
            reservations.map(({ generationId }) => generationId),
          ).map((id) => (id === "poor" ? ReservationOutcome.CREDITS_EXHAUSTED : ReservationOutcome.GRANTED)),
        }),
        settle: ({ events }) => ({
          outcomes: this.#hear(
            "settle",
            events.map(({ eventId }) => eventId),
          ).map((id) => (id === "unknown" ? SettleOutcome.HOLD_UNKNOWN : SettleOutcome.STORED)),
        }),
        release: ({ holds }) => {
          this.#hear(
            "release",
            holds.map(({ generationId }) => generationId),
          );
          return {};
        },
      }),
    );
  }

  #hear(rpc: string, ids: string[]): string[] {
    this.calls.push({ rpc, ids });
    if (this.failure !== undefined) throw this.failure.toConnectError();
    return ids;
  }
}

function scene(options: Partial<AccountHoldsOptions> = {}) {
  const account = new FakeAccount();
  const logged: string[] = [];
  const log = createLog({
    name: "test",
    level: "trace",
    destination: { write: (line) => void logged.push((JSON.parse(line) as { msg: string }).msg) },
  });
  const rpc = createRpcClient(AccountInternalService, account.transport());
  const holds = new AccountHolds({ account: rpc, log, ...options });
  return { holds, calls: account.calls, account, logged };
}

const away = new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away");
const reservation = (generationId: string) => create(ReservationSchema, { generationId });
const event = (eventId: string) => create(GenerationEventSchema, { eventId });
const release = (generationId: string) => ({ generationId, accountId: "account" });

test("what is due at the same moment is one call for each kind", async () => {
  const { holds, calls } = scene();
  const answers = await Promise.all([
    holds.reserve(reservation("one")),
    holds.reserve(reservation("poor")),
    holds.settle(event("two")),
    holds.settle(event("unknown")),
  ]);
  expect(answers).toEqual([
    ReservationOutcome.GRANTED,
    ReservationOutcome.CREDITS_EXHAUSTED,
    SettleOutcome.STORED,
    SettleOutcome.HOLD_UNKNOWN,
  ]);
  expect(calls).toEqual([
    { rpc: "reserve", ids: ["one", "poor"] },
    { rpc: "settle", ids: ["two", "unknown"] },
  ]);
});

describe("while account is away", () => {
  test("a reservation is repeated with its id, and granted when account is back in time", async () => {
    const { holds, calls, account, logged } = scene();
    account.failure = away;
    const granted = holds.reserve(reservation("one"));
    await waitUntil(() => calls.length === 2);
    account.failure = undefined;
    expect(await granted).toBe(ReservationOutcome.GRANTED);
    expect(new Set(calls.map(({ ids }) => ids.join()))).toEqual(new Set(["one"]));
    expect(logged).toEqual(["credit can't be reserved yet"]);
  });

  test("a reservation fails in the end", async () => {
    const { holds, account } = scene({ reserveTimeoutMs: 20 });
    account.failure = away;
    await expect(holds.reserve(reservation("one"))).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
  });

  test("settlements and releases are repeated until it is back", async () => {
    const { holds, calls, account } = scene();
    account.failure = away;
    const settled = holds.settle(event("one"));
    holds.release(release("two"));
    expect(holds.pendingReleases).toBe(1);
    await waitUntil(() => calls.length >= 4);
    account.failure = undefined;
    expect(await settled).toBe(SettleOutcome.STORED);
    await waitUntil(() => holds.pendingReleases === 0);
  });

  test("the end of the process ends the repeating", async () => {
    const { holds, account } = scene();
    account.failure = away;
    const settled = holds.settle(event("one"));
    holds.close();
    await expect(settled).rejects.toThrow();
  });
});

test("what account will never take is not repeated", async () => {
  const { holds, calls, account } = scene();
  account.failure = DomainError.invalid([{ path: "events.0", message: "is no event" }]);
  await expect(holds.settle(event("one"))).rejects.toMatchObject({ reason: ErrorReason.INVALID_BODY });
  expect(calls).toHaveLength(1);
});

test("a large batch goes out in parts", async () => {
  const { holds, calls } = scene();
  const ids = Array.from({ length: 300 }, (_, index) => `id-${index}`);
  await Promise.all(ids.map((id) => holds.settle(event(id))));
  expect(calls.length).toBeGreaterThan(1);
  expect(calls.flatMap((call) => call.ids).sort()).toEqual(ids.sort());
});
