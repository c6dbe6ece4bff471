import { createRequire } from "node:module";
import { expect, onTestFinished, test, vi } from "vitest";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { letKafkaConnectionsRest } from "./kafka-request-queue.ts";

/** As far as it is used here. */
interface RequestQueue {
  throttledUntil: number;
  push(request: object): void;
  fulfillRequest(response: object): void;
  scheduleRequestTimeoutCheck(): void;
  destroy(): void;
}

const RequestQueue = createRequire(import.meta.url)("kafkajs/src/network/requestQueue/index.js") as new (
  options: object,
) => RequestQueue;

const silent = { debug: () => undefined, warn: () => undefined };

function openQueue(options: object = {}) {
  const isRested = letKafkaConnectionsRest();
  const queue = new RequestQueue({
    requestTimeout: 5000,
    enforceRequestTimeout: true,
    logger: silent,
    ...options,
  });
  onTestFinished(() => queue.destroy());
  const [sent, answered, refused]: [number[], number[], number[]] = [[], [], []];
  const push = (correlationId: number) =>
    queue.push({
      entry: {
        correlationId,
        resolve: () => answered.push(correlationId),
        reject: () => refused.push(correlationId),
      },
      expectResponse: true,
      sendRequest: () => sent.push(correlationId),
    });
  return { isRested, queue, push, sent, answered, refused };
}

test("the installed kafkajs is the one that is let rest", () => {
  expect(openQueue().isRested).toBe(true);
  expect(letKafkaConnectionsRest()).toBe(true);
});

test("a queue in which nothing waits sets no timer", () => {
  const { queue, push, answered } = openQueue();
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => timers.mockRestore());
  for (const correlationId of [1, 2]) {
    push(correlationId);
    queue.fulfillRequest({ correlationId, size: 0, payload: null });
  }
  expect(answered).toEqual([1, 2]);
  expect(timers).not.toHaveBeenCalled();
});

test("what has to wait is sent when it may be", async () => {
  const throttled = openQueue();
  throttled.queue.throttledUntil = Date.now() + 50;
  throttled.push(1);
  expect(throttled.sent).toEqual([]);
  await waitUntil(() => throttled.sent.length === 1);
  const full = openQueue({ maxInFlightRequests: 1 });
  full.push(1);
  full.push(2);
  expect(full.sent).toEqual([1]);
  full.queue.fulfillRequest({ correlationId: 1, size: 0, payload: null });
  expect(full.sent).toEqual([1, 2]);
});

test("a request without an answer is given up", async () => {
  const { queue, push, refused } = openQueue({ requestTimeout: 20 });
  queue.scheduleRequestTimeoutCheck();
  push(1);
  await waitUntil(() => refused.length === 1);
});

test("another kafkajs is left as it is", () => {
  const other = {
    scheduleCheckPendingRequests() {
      return undefined;
    },
    scheduleRequestTimeoutCheck() {
      return undefined;
    },
  };
  const before = { ...other };
  expect(letKafkaConnectionsRest(other)).toBe(false);
  expect(other).toEqual(before);
});
