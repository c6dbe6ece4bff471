// @ts-expect-error: kafkajs has no types of its insides.
import KafkaRequestQueue from "kafkajs/src/network/requestQueue/index.js";

/** What is used of a connection's queue of requests in kafkajs 2.2. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly inflight: ReadonlyMap<unknown, SocketRequest>;
  readonly requestTimeout: number;
  readonly enforceRequestTimeout: boolean;
  requestTimeoutIntervalId: NodeJS.Timeout | undefined;
  isConnected(): boolean;
  destroy(): void;
  scheduleCheckPendingRequests(this: RequestQueue): void;
  scheduleRequestTimeoutCheck(this: RequestQueue): void;
}

interface SocketRequest {
  readonly sentAt: number;
  readonly requestTimeout: number;
  timeoutRequest(): void;
}

type Restable = Pick<RequestQueue, "scheduleCheckPendingRequests" | "scheduleRequestTimeoutCheck">;

/** What the methods do that are replaced, in the order in which it stands in them; other versions may do otherwise. */
const expected: Readonly<Record<keyof Restable, RegExp>> = {
  scheduleCheckPendingRequests:
    /this\.throttledUntil - Date\.now\(\).*if \(!this\.throttleCheckTimeoutId\).*setTimeout\(.*this\.checkPendingRequests\(\)/s,
  scheduleRequestTimeoutCheck:
    /this\.enforceRequestTimeout.*setInterval\(.*request\.timeoutRequest\(\).*Math\.min\(this\.requestTimeout, 100\)/s,
};

/** Late by so much at most, a request is given up; those that wait for an answer longest wait for seconds. */
const timeoutCheckMs = 5000;
const rested = Symbol("rests while nothing waits");

/**
 * Lets the connections of kafkajs rest, in all of this process. As published, a connection that was used once looks for
 * requests to send in every millisecond although none waits (kafkajs issues 1556, 1704 and 1751), and for requests to
 * give up ten times a second. False, and nothing is changed, when kafkajs is not the one that this was written for.
 */
export function letKafkaConnectionsRest(prototype: Restable = KafkaRequestQueue.prototype): boolean {
  if (Object.hasOwn(prototype, rested)) return true;
  const isExpected = Object.entries(expected).every(([name, pattern]) =>
    pattern.test(String(prototype[name as keyof Restable])),
  );
  if (!isExpected) return false;
  const schedule = prototype.scheduleCheckPendingRequests;
  Object.assign(prototype, {
    [rested]: true,
    // Whatever begins to wait schedules for itself, and each answer looks for what waits.
    scheduleCheckPendingRequests(this: RequestQueue) {
      if (this.pending.length > 0) schedule.call(this);
    },
    scheduleRequestTimeoutCheck,
  });
  return true;
}

/** As in kafkajs, but for how often. */
function scheduleRequestTimeoutCheck(this: RequestQueue): void {
  if (!this.enforceRequestTimeout) return;
  this.destroy();
  const check = () => {
    for (const request of this.inflight.values()) {
      if (Date.now() - request.sentAt > request.requestTimeout) request.timeoutRequest();
    }
    if (!this.isConnected()) this.destroy();
  };
  this.requestTimeoutIntervalId = setInterval(check, Math.min(this.requestTimeout, timeoutCheckMs));
}
