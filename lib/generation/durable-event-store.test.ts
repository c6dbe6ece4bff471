import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SettleOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import { GenerationEventSchema } from "../../gen/media/event/v1/generation_event_pb.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { PublishError } from "../events/bus.ts";
import { createLog } from "../runtime/log.ts";
import { DurableEventStore, type DurableEventStoreOptions } from "./durable-event-store.ts";

const longMs = 60_000;
const event = create(GenerationEventSchema, { eventId: "gen-tts-1", accountId: "account" });

/** A bus and an account that answer when the test says so. */
function scene(options: Partial<DurableEventStoreOptions> = {}) {
  const logged: Record<string, unknown>[] = [];
  const log = createLog({
    name: "test",
    level: "trace",
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const taken = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<SettleOutcome>();
  // A test may answer before anybody asks.
  for (const answer of [taken.promise, settled.promise]) answer.catch(() => undefined);
  const store = new DurableEventStore({
    bus: { send: () => taken.promise },
    holds: { settle: () => settled.promise, pendingReleases: 0 },
    log,
    waitMs: longMs,
    ...options,
  });
  return { store, taken, settled, logged };
}

describe("an event is safe", () => {
  test("once the bus has it", async () => {
    const { store, taken } = scene();
    const stored = store.store(event);
    taken.resolve();
    expect(await stored).toBe(true);
  });

  test("once account has it", async () => {
    const { store, settled } = scene();
    const stored = store.store(event);
    settled.resolve(SettleOutcome.STORED);
    expect(await stored).toBe(true);
  });

  test("by the bus alone when account does not take it", async () => {
    const { store, taken, settled, logged } = scene();
    const stored = store.store(event);
    settled.resolve(SettleOutcome.HOLD_CLOSED);
    await waitUntil(() => logged.length > 0);
    expect(logged).toMatchObject([{ level: "error", generation_id: "gen-tts-1" }]);
    taken.resolve();
    expect(await stored).toBe(true);
  });
});

test("an answer waits for neither longer than it may", async () => {
  const { store } = scene({ waitMs: 5 });
  expect(await store.store(event)).toBe(false);
  expect(store.publisherFigures.pending).toBe(1);
});

test("an event that neither will ever take is logged", async () => {
  const { store, taken, settled, logged } = scene();
  const stored = store.store(event);
  settled.reject(new Error("closed"));
  taken.reject(new PublishError("too large"));
  expect(await stored).toBe(false);
  const messages = logged.map(({ msg }) => msg);
  expect(messages.sort()).toEqual(["event can't be published and is left out", "event could not be stored"]);
});

test("there is no more room when too many wait for account", async () => {
  const { store, settled } = scene({ maxUnsettled: 1, waitMs: 0 });
  expect(store.hasRoom).toBe(true);
  await store.store(event);
  expect(store.hasRoom).toBe(false);
  settled.resolve(SettleOutcome.STORED);
  await waitUntil(() => store.hasRoom);
});

describe("the end", () => {
  test("waits until every event is safe, and then a little for the bus", async () => {
    const { store, taken, settled } = scene({ waitMs: 0 });
    await store.store(event);
    let flushed = false;
    const flushing = store.flush(longMs).then(() => {
      flushed = true;
    });
    await new Promise(setImmediate);
    expect(flushed).toBe(false);
    settled.resolve(SettleOutcome.STORED);
    taken.resolve();
    await flushing;
  });

  test("waits for so long at most", async () => {
    const { store } = scene({ waitMs: 0 });
    await store.store(event);
    await store.flush(5);
  });
});
