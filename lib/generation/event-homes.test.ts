import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SettleOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import { GenerationEventSchema } from "../../gen/media/event/v1/generation_event_pb.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { PublishError } from "../events/bus.ts";
import { EventPublisher } from "../events/publisher.ts";
import { createLog } from "../runtime/log.ts";
import { EventHomes, type EventHomesOptions } from "./event-homes.ts";

const longMs = 60_000;
const event = create(GenerationEventSchema, { eventId: "gen-tts-1", accountId: "account" });

/** Two homes that answer when the test says so. */
function scene(options: Partial<EventHomesOptions> = {}) {
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
  const publisher = new EventPublisher({ bus: { send: () => taken.promise }, log });
  const homes = new EventHomes({
    publisher,
    holds: { settle: () => settled.promise, pendingReleases: 0 },
    log,
    waitMs: longMs,
    ...options,
  });
  return { homes, publisher, taken, settled, logged };
}

describe("an event is safe", () => {
  test("once the bus has it", async () => {
    const { homes, taken } = scene();
    const stored = homes.store(event);
    taken.resolve();
    expect(await stored).toBe(true);
  });

  test("once account has it", async () => {
    const { homes, settled } = scene();
    const stored = homes.store(event);
    settled.resolve(SettleOutcome.STORED);
    expect(await stored).toBe(true);
  });

  test("by the bus alone when account does not take it", async () => {
    const { homes, taken, settled, logged } = scene();
    const stored = homes.store(event);
    settled.resolve(SettleOutcome.HOLD_CLOSED);
    await waitUntil(() => logged.length > 0);
    expect(logged).toMatchObject([{ level: "error", generation_id: "gen-tts-1" }]);
    taken.resolve();
    expect(await stored).toBe(true);
  });
});

test("an answer waits for neither home longer than it may", async () => {
  const { homes, publisher } = scene({ waitMs: 5 });
  expect(await homes.store(event)).toBe(false);
  expect(publisher.figures.pending).toBe(1);
});

test("an event that no home will ever take is told of", async () => {
  const { homes, taken, settled, logged } = scene();
  const stored = homes.store(event);
  settled.reject(new Error("closed"));
  taken.reject(new PublishError("too large"));
  expect(await stored).toBe(false);
  expect(logged.map(({ msg }) => msg)).toContain("event has no home");
});

test("there is no more room when too many wait for account", async () => {
  const { homes, settled } = scene({ maxUnsettled: 1, waitMs: 0 });
  expect(homes.hasRoom).toBe(true);
  await homes.store(event);
  expect(homes.hasRoom).toBe(false);
  settled.resolve(SettleOutcome.STORED);
  await waitUntil(() => homes.hasRoom);
});

describe("the end", () => {
  test("waits until every event is safe, and then a little for the bus", async () => {
    const { homes, taken, settled } = scene({ waitMs: 0 });
    await homes.store(event);
    let flushed = false;
    const flushing = homes.flush(longMs).then(() => {
      flushed = true;
    });
    await new Promise(setImmediate);
    expect(flushed).toBe(false);
    settled.resolve(SettleOutcome.STORED);
    taken.resolve();
    await flushing;
  });

  test("waits for so long at most", async () => {
    const { homes } = scene({ waitMs: 0 });
    await homes.store(event);
    await homes.flush(5);
  });
});
