import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog } from "../runtime/log.ts";
import { type OutgoingMessage, PublishError } from "./bus.ts";
import { EvictedError, SendQueue, type SendQueueOptions } from "./send-queue.ts";

const topic = "some.topic";
const messageOf = (name: string, value = name): OutgoingMessage => ({ key: name, value: Buffer.from(value) });

/** A bus of which the test says what becomes of each send; from the `takesFrom`th on it takes what comes. */
function scene(options: Partial<SendQueueOptions> = {}, takesFrom = Number.POSITIVE_INFINITY) {
  const sends: { names: string[]; end: PromiseWithResolvers<void>; signal: AbortSignal }[] = [];
  const logged: Record<string, unknown>[] = [];
  const log = createLog({
    name: "test",
    level: "trace",
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const bus = {
    send(given: string, messages: readonly OutgoingMessage[], signal: AbortSignal) {
      expect(given).toBe(topic);
      const end = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => end.reject(signal.reason));
      sends.push({ names: messages.map(({ key }) => key), end, signal });
      if (sends.length >= takesFrom) end.resolve();
      return end.promise;
    },
  };
  const queue = new SendQueue({ bus, topic, log, ...options });
  const sent = async (count: number) => {
    await waitUntil(() => sends.length >= count);
    return sends[count - 1];
  };
  return { queue, sends, sent, logged };
}

describe("a message", () => {
  test("goes out with those of the same moment; what comes meanwhile goes together after it", async () => {
    const { queue, sent, sends } = scene();
    const first = ["a", "b"].map((name) => queue.add(messageOf(name)).confirmed);
    const one = await sent(1);
    const later = ["c", "d"].map((name) => queue.add(messageOf(name)).confirmed);
    await new Promise(setImmediate);
    expect(sends.map(({ names }) => names)).toEqual([["a", "b"]]);
    one?.end.resolve();
    await Promise.all(first);
    const two = await sent(2);
    expect(two?.names).toEqual(["c", "d"]);
    two?.end.resolve();
    await Promise.all(later);
    expect(queue.stats).toMatchObject({ pending: 0, pendingBytes: 0, oldestMs: 0, published: 4 });
  });

  test("is sent again, the same bytes, until the bus takes it", async () => {
    const { queue, sent, sends, logged } = scene();
    const { confirmed } = queue.add(messageOf("a"));
    (await sent(1))?.end.reject(new Error("away"));
    (await sent(2))?.end.reject(new Error("away"));
    expect(queue.stats).toMatchObject({ pending: 1, published: 0 });
    (await sent(3))?.end.resolve();
    await confirmed;
    expect(sends.map(({ names }) => names)).toEqual([["a"], ["a"], ["a"]]);
    expect(queue.stats).toMatchObject({ failures: 2, published: 1 });
    expect(logged.map(({ msg }) => msg)).toEqual([
      "messages can't be sent yet",
      "messages can be sent again",
    ]);
  });

  test("is sent again when a send takes too long", async () => {
    const { queue, sends } = scene({ sendTimeoutMs: 5 }, 2);
    await queue.add(messageOf("a")).confirmed;
    expect(sends[0]?.signal.aborted).toBe(true);
  });

  test("that the bus will never take is refused, and its neighbours go on", async () => {
    const { queue, sent, sends } = scene();
    const [good, bad, other] = ["a", "b", "c"].map((name) => queue.add(messageOf(name)).confirmed);
    (await sent(1))?.end.reject(new PublishError("too large"));
    (await sent(2))?.end.reject(new PublishError("too large"));
    (await sent(3))?.end.resolve();
    (await sent(4))?.end.reject(new PublishError("too large"));
    (await sent(5))?.end.resolve();
    await Promise.all([good, other]);
    await expect(bad).rejects.toThrow("too large");
    expect(queue.stats).toMatchObject({ published: 2, quarantined: 1, pending: 0 });
    expect(sends.map(({ names }) => names)).toEqual([["a", "b", "c"], ["a", "b"], ["a"], ["b"], ["c"]]);
  });
});

describe("a message that its sender gives up", () => {
  test("is not sent any more, and holds up nothing", async () => {
    const { queue, sent, sends } = scene();
    const [under, waiting, last] = ["a", "b", "c"].map((name) => queue.add(messageOf(name)));
    const one = await sent(1);
    const later = queue.add(messageOf("d"));
    for (const message of [under, waiting, later]) message?.giveUp(new Error("given up"));
    one?.end.reject(new Error("away"));
    (await sent(2))?.end.resolve();
    await last?.confirmed;
    for (const message of [under, waiting, later])
      await expect(message?.confirmed).rejects.toThrow("given up");
    expect(await queue.flush(0)).toBe(true);
    expect(sends.map(({ names }) => names)).toEqual([["a", "b", "c"], ["c"]]);
    expect(queue.stats).toMatchObject({ pending: 0, pendingBytes: 0, published: 1 });
  });
});

describe("memory", () => {
  test("has room again once messages are confirmed", async () => {
    const { queue, sent } = scene({ maxPendingBytes: 100 });
    expect(queue.hasRoom).toBe(true);
    const { confirmed } = queue.add(messageOf("a", "x".repeat(100)));
    expect(queue.hasRoom).toBe(false);
    (await sent(1))?.end.resolve();
    await confirmed;
    expect(queue.hasRoom).toBe(true);
  });

  test("has room for so many messages", async () => {
    const { queue } = scene({ maxPendingMessages: 2 }, 1);
    const queued = ["a", "b"].map((name) => queue.add(messageOf(name)));
    expect(queue.hasRoom).toBe(false);
    await Promise.all(queued.map(({ confirmed }) => confirmed));
    expect(queue.hasRoom).toBe(true);
  });

  test("lets go of messages that are kept elsewhere when many wait, and of no other", async () => {
    const { queue, sent } = scene({ manyMessages: 4 });
    const first = queue.add(messageOf("first"));
    const under = await sent(1);
    const names = ["a", "b", "c", "d", "e", "f"];
    const queued = names.map((name) => queue.add(messageOf(name)));
    for (const index of [0, 2, 4]) queued[index]?.isKeptElsewhere();
    for (const index of [0, 2, 4])
      await expect(queued[index]?.confirmed).rejects.toBeInstanceOf(EvictedError);
    under?.end.resolve();
    await first.confirmed;
    const rest = await sent(2);
    expect(rest?.names).toEqual(["b", "d", "f"]);
    expect(queue.stats).toMatchObject({ evicted: 3, pending: 3 });
  });
});

describe("the end", () => {
  test("waits for what is under way, for so long", async () => {
    const { queue, sent } = scene();
    expect(await queue.flush(0)).toBe(true);
    void queue.add(messageOf("a"));
    expect(await queue.flush(5)).toBe(false);
    const flushed = queue.flush(60_000);
    (await sent(1))?.end.resolve();
    expect(await flushed).toBe(true);
  });

  test("gives up what waits", async () => {
    const { queue, sent } = scene();
    const under = queue.add(messageOf("a"));
    await sent(1);
    const waiting = queue.add(messageOf("b"));
    queue.close();
    await expect(waiting.confirmed).rejects.toThrow("closed");
    await expect(under.confirmed).rejects.toThrow();
    expect(queue.stats.pending).toBe(0);
  });
});

describe("a queue that gathers", () => {
  const gatherMs = 1000;
  /** Longer than a message waits that is kept nowhere else. */
  const momentMs = 50;

  beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => vi.useRealTimers());

  /** What was sent, so much later. */
  async function sentAfter(ms: number, { sends }: ReturnType<typeof scene>) {
    vi.advanceTimersByTime(ms);
    await new Promise(setImmediate);
    return sends.map(({ names }) => names.join(""));
  }

  test("sends what is kept elsewhere together, once the first has waited", async () => {
    const made = scene({ gatherMs }, 0);
    const add = (name: string) => made.queue.add(messageOf(name)).isKeptElsewhere();
    add("a");
    expect(await sentAfter(gatherMs - 1, made)).toEqual([]);
    add("b");
    expect(await sentAfter(1, made)).toEqual(["ab"]);
    add("c");
    expect(await sentAfter(gatherMs - 1, made)).toEqual(["ab"]);
    expect(await sentAfter(1, made)).toEqual(["ab", "c"]);
  });

  test("sends what is kept nowhere else a moment later, and with it all that waits", async () => {
    const made = scene({ gatherMs }, 0);
    made.queue.add(messageOf("a")).isKeptElsewhere();
    expect(await sentAfter(momentMs, made)).toEqual([]);
    const unsafe = made.queue.add(messageOf("b"));
    made.queue.add(messageOf("c")).isKeptElsewhere();
    expect(await sentAfter(momentMs, made)).toEqual(["abc"]);
    await unsafe.confirmed;
  });

  test("waits for nobody who had a moment and is kept elsewhere since", async () => {
    const made = scene({ gatherMs }, 0);
    const queued = made.queue.add(messageOf("a"));
    expect(await sentAfter(1, made)).toEqual([]);
    queued.isKeptElsewhere();
    expect(await sentAfter(momentMs, made)).toEqual([]);
  });

  test("sends what is due behind the batch under way, and gathers on", async () => {
    const made = scene({ gatherMs });
    made.queue.add(messageOf("a"));
    expect(await sentAfter(momentMs, made)).toEqual(["a"]);
    made.queue.add(messageOf("b"));
    expect(await sentAfter(momentMs, made)).toEqual(["a"]);
    made.sends[0]?.end.resolve();
    expect(await sentAfter(0, made)).toEqual(["a", "b"]);
    made.queue.add(messageOf("c")).isKeptElsewhere();
    made.sends[1]?.end.resolve();
    expect(await sentAfter(momentMs, made)).toEqual(["a", "b"]);
    expect(made.queue.stats.pending).toBe(1);
  });

  test("does not wait with a full batch", async () => {
    const made = scene({ gatherMs }, 0);
    for (let count = 0; count < 500; count++) made.queue.add(messageOf("a")).isKeptElsewhere();
    expect(await sentAfter(0, made)).toHaveLength(1);
  });

  test("sends at once what waits when it is flushed, and nothing once it is closed", async () => {
    const made = scene({ gatherMs }, 0);
    made.queue.add(messageOf("a")).isKeptElsewhere();
    expect(await made.queue.flush(60_000)).toBe(true);
    const waiting = made.queue.add(messageOf("b"));
    made.queue.close();
    await expect(waiting.confirmed).rejects.toThrow("closed");
    expect(await sentAfter(2 * gatherMs, made)).toEqual(["a"]);
  });
});
