import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ByteQueue } from "./byte-queue.ts";

function createQueue(highWaterBytes: number) {
  const calls: string[] = [];
  const queue = new ByteQueue(
    {
      pause: () => calls.push("pause"),
      resume: () => calls.push("resume"),
      leave: () => calls.push("leave"),
    },
    highWaterBytes,
  );
  return { queue, calls };
}

describe("a byte queue", () => {
  test("gives every byte once, in order, and pauses its source exactly while it is full", async () => {
    const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constant("read" as const)));
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const { queue, calls } = createQueue(64);
        const read: number[] = [];
        let pushed = 0;
        let queuedBytes = 0;
        for (const step of plan) {
          if (step === "read") {
            if (queuedBytes === 0) continue;
            const { value } = await queue.next();
            read.push(...(value ?? []));
            queuedBytes -= value?.length ?? 0;
          } else {
            queue.push(Uint8Array.from({ length: step }, () => pushed++ % 256));
            queuedBytes += step;
          }
          if (queuedBytes >= 64) expect(calls.at(-1)).toBe("pause");
          if (queuedBytes < 32) expect(calls.at(-1)).not.toBe("pause");
        }
        queue.end();
        for await (const chunk of queue) read.push(...chunk);
        expect(read).toEqual(Array.from({ length: pushed }, (_, index) => index % 256));
      }),
    );
  });

  test("hands on the very buffers it was given", async () => {
    const { queue } = createQueue(64);
    const [first, second] = [Uint8Array.of(1), Uint8Array.of(2)];
    queue.push(first);
    expect((await queue.next()).value).toBe(first);
    const waiting = queue.next();
    queue.push(second);
    expect((await waiting).value).toBe(second);
  });

  test("throws a failure after what came before it", async () => {
    const { queue } = createQueue(64);
    queue.push(Uint8Array.of(1));
    queue.fail(new Error("broken"));
    queue.push(Uint8Array.of(2));
    expect((await queue.next()).value).toEqual(Uint8Array.of(1));
    await expect(queue.next()).rejects.toThrow("broken");
    await expect(queue.next()).rejects.toThrow("broken");
  });

  test("fails a waiting read at once when it is abandoned, and drops what is queued", async () => {
    const waiting = createQueue(64).queue;
    const read = waiting.next();
    waiting.abandon(new Error("given up"));
    await expect(read).rejects.toThrow("given up");

    const { queue } = createQueue(64);
    queue.push(Uint8Array.of(1));
    queue.end();
    queue.abandon(new Error("given up"));
    await expect(queue.next()).rejects.toThrow("given up");
  });

  test("stays at its end when it is abandoned after that", async () => {
    const { queue } = createQueue(64);
    queue.end();
    queue.abandon(new Error("given up"));
    expect((await queue.next()).done).toBe(true);
  });

  test("notifies its source once when the reader leaves early, and not after the end", async () => {
    const early = createQueue(64);
    early.queue.push(Uint8Array.of(1));
    for await (const _ of early.queue) break;
    await early.queue.return();
    expect(early.calls).toEqual(["leave"]);
    expect((await early.queue.next()).done).toBe(true);

    const ended = createQueue(64);
    ended.queue.end();
    for await (const _ of ended.queue);
    await ended.queue.return();
    expect(ended.calls).toEqual([]);
  });

  test("refuses a second read while one waits", async () => {
    const { queue } = createQueue(64);
    const first = queue.next();
    await expect(queue.next()).rejects.toThrow("One read at a time");
    queue.end();
    expect((await first).done).toBe(true);
  });
});
