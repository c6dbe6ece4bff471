import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type GenerationEvent, GenerationEventSchema } from "../../gen/media/event/v1/generation_event_pb.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog } from "../runtime/log.ts";
import { type OutgoingMessage, PublishError } from "./bus.ts";
import { EventPublisher, type EventPublisherOptions } from "./publisher.ts";
import { generationEventsTopic } from "./topics.ts";

const eventOf = (name: string, trace?: string): GenerationEvent =>
  create(GenerationEventSchema, {
    eventId: `gen-tts-${name}`,
    accountId: "00000000-0000-4000-8000-000000000001",
    ...(trace === undefined ? {} : { trace: { trace } }),
  });
const nameOf = ({ value }: OutgoingMessage) =>
  /gen-tts-(\w+)/.exec(Buffer.from(value).toString("latin1"))?.[1];

/** A bus of which the test says what becomes of each send; from the `takesFrom`th on it takes what comes. */
function scene(options: Partial<EventPublisherOptions> = {}, takesFrom = Number.POSITIVE_INFINITY) {
  const sends: { names: (string | undefined)[]; end: PromiseWithResolvers<void>; signal: AbortSignal }[] = [];
  const logged: Record<string, unknown>[] = [];
  const log = createLog({
    name: "test",
    level: "trace",
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const bus = {
    send(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal) {
      expect(topic).toBe(generationEventsTopic);
      const end = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => end.reject(signal.reason));
      sends.push({ names: messages.map(nameOf), end, signal });
      if (sends.length >= takesFrom) end.resolve();
      return end.promise;
    },
  };
  const publisher = new EventPublisher({ bus, log, ...options });
  const sent = async (count: number) => {
    await waitUntil(() => sends.length >= count);
    return sends[count - 1];
  };
  return { publisher, sends, sent, logged };
}

describe("an event", () => {
  test("goes out with those of the same moment; what comes meanwhile goes together after it", async () => {
    const { publisher, sent, sends } = scene();
    const first = ["a", "b"].map((name) => publisher.publish(eventOf(name)).confirmed);
    const one = await sent(1);
    const later = ["c", "d"].map((name) => publisher.publish(eventOf(name)).confirmed);
    await new Promise(setImmediate);
    expect(sends.map(({ names }) => names)).toEqual([["a", "b"]]);
    one?.end.resolve();
    await Promise.all(first);
    const two = await sent(2);
    expect(two?.names).toEqual(["c", "d"]);
    two?.end.resolve();
    await Promise.all(later);
    expect(publisher.figures).toMatchObject({ pending: 0, pendingBytes: 0, oldestMs: 0, published: 4 });
  });

  test("is sent again, the same bytes, until the bus takes it", async () => {
    const { publisher, sent, sends, logged } = scene();
    const { confirmed } = publisher.publish(eventOf("a"));
    (await sent(1))?.end.reject(new Error("away"));
    (await sent(2))?.end.reject(new Error("away"));
    expect(publisher.figures).toMatchObject({ pending: 1, published: 0 });
    (await sent(3))?.end.resolve();
    await confirmed;
    expect(sends.map(({ names }) => names)).toEqual([["a"], ["a"], ["a"]]);
    expect(publisher.figures).toMatchObject({ failures: 2, published: 1 });
    expect(logged.map(({ msg }) => msg)).toEqual(["events can't be published yet"]);
  });

  test("is sent again when a send takes too long", async () => {
    const { publisher, sends } = scene({ sendTimeoutMs: 5 }, 2);
    await publisher.publish(eventOf("a")).confirmed;
    expect(sends[0]?.signal.aborted).toBe(true);
  });

  test("that the bus will never take is left out with a log line, and its neighbours go on", async () => {
    const { publisher, sent, logged } = scene();
    const [good, bad, other] = ["a", "b", "c"].map((name) => publisher.publish(eventOf(name)).confirmed);
    (await sent(1))?.end.reject(new PublishError("too large"));
    (await sent(2))?.end.resolve();
    (await sent(3))?.end.reject(new PublishError("too large"));
    (await sent(4))?.end.resolve();
    await Promise.all([good, other]);
    await expect(bad).rejects.toThrow("too large");
    expect(publisher.figures).toMatchObject({ published: 2, quarantined: 1, pending: 0 });
    expect(logged).toMatchObject([{ level: "error", generation_id: "gen-tts-b" }]);
  });
});

describe("memory", () => {
  test("has room again once events are confirmed", async () => {
    const { publisher, sent } = scene({ maxPendingBytes: 100 });
    expect(publisher.hasRoom).toBe(true);
    const { confirmed } = publisher.publish(eventOf("a", "x".repeat(100)));
    expect(publisher.hasRoom).toBe(false);
    (await sent(1))?.end.resolve();
    await confirmed;
    expect(publisher.hasRoom).toBe(true);
  });

  test("lets go of events with another home when many wait, and of no other", async () => {
    const { publisher, sent } = scene({ manyEvents: 4 });
    const first = publisher.publish(eventOf("first"));
    const under = await sent(1);
    const names = ["a", "b", "c", "d", "e", "f"];
    const publications = names.map((name) => publisher.publish(eventOf(name)));
    for (const index of [0, 2, 4]) publications[index]?.hasOtherHome();
    for (const index of [0, 2, 4]) await expect(publications[index]?.confirmed).rejects.toThrow("let go of");
    under?.end.resolve();
    await first.confirmed;
    const rest = await sent(2);
    expect(rest?.names).toEqual(["b", "d", "f"]);
    expect(publisher.figures).toMatchObject({ letGo: 3, pending: 3 });
  });
});

describe("the end", () => {
  test("waits for what is under way, for so long", async () => {
    const { publisher, sent } = scene();
    expect(await publisher.flush(0)).toBe(true);
    void publisher.publish(eventOf("a"));
    expect(await publisher.flush(5)).toBe(false);
    const flushed = publisher.flush(60_000);
    (await sent(1))?.end.resolve();
    expect(await flushed).toBe(true);
  });

  test("gives up what waits", async () => {
    const { publisher, sent } = scene();
    const under = publisher.publish(eventOf("a"));
    await sent(1);
    const waiting = publisher.publish(eventOf("b"));
    publisher.close();
    await expect(waiting.confirmed).rejects.toThrow("closed");
    await expect(under.confirmed).rejects.toThrow();
    expect(publisher.figures.pending).toBe(0);
  });
});
