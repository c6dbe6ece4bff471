import { Agent, request as httpRequest } from "node:http";
import { setTimeout as delay } from "node:timers/promises";

/** A request, and what must come back. */
export interface Exchange {
  /** URL of the operation. */
  readonly url: string;
  readonly apiKey: string;
  /** JSON. */
  readonly body: string;
  /** Whether an answer of so many bytes is the whole one. */
  readonly isWhole: (bytes: number) => boolean;
}

/** How much is asked. */
export interface Load {
  /** As many as can be sent until `seconds` are over, unless given. */
  readonly requests?: number;
  /** When nothing more is sent; never unless given. */
  readonly seconds?: number;
  /** Requests in flight at any moment. */
  readonly concurrency: number;
}

/** What a run took. */
export interface LoadResult {
  readonly seconds: number;
  /** Time to first byte of each request, milliseconds, ascending. */
  readonly firstByteMs: readonly number[];
}

/** Sends requests, the exchanges in turn, `concurrency` at a time; throws when one does not answer whole. */
export async function runLoad(exchanges: readonly Exchange[], load: Load): Promise<LoadResult> {
  const { requests = Number.POSITIVE_INFINITY, seconds: limit = Number.POSITIVE_INFINITY } = load;
  const agent = new Agent({ keepAlive: true, maxSockets: load.concurrency });
  const firstByteMs: number[] = [];
  let sent = 0;
  const startedMs = performance.now();
  const worker = async () => {
    while (sent < requests && performance.now() < startedMs + limit * 1000) {
      const exchange = exchanges[sent % exchanges.length];
      if (exchange === undefined) return;
      sent += 1;
      firstByteMs.push(await sendOne(exchange, agent));
    }
  };
  try {
    await Promise.all(Array.from({ length: load.concurrency }, worker));
  } finally {
    agent.destroy();
  }
  const seconds = (performance.now() - startedMs) / 1000;
  return { seconds, firstByteMs: firstByteMs.sort((a, b) => a - b) };
}

/** Sends requests at a rate, the exchanges in turn, however many are in flight; throws when one does not answer whole. */
export async function runAtRate(
  exchanges: readonly Exchange[],
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true });
  const firstByteMs: number[] = [];
  const inFlight = new Set<Promise<void>>();
  const failed = Promise.withResolvers<never>();
  const ending = new AbortController();
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1000;
  let sent = 0;
  const sendDue = () => {
    while (sent < Math.min(elapsed(), seconds) * perSecond) {
      const exchange = exchanges[sent % exchanges.length];
      sent += 1;
      if (exchange === undefined) return;
      const answer = sendOne(exchange, agent).then((ms) => void firstByteMs.push(ms), failed.reject);
      inFlight.add(answer);
      void answer.finally(() => inFlight.delete(answer));
    }
  };
  const ticking = setInterval(sendDue, 5);
  try {
    await Promise.race([delay(seconds * 1000, undefined, { signal: ending.signal }), failed.promise]);
    await Promise.race([Promise.all(inFlight), failed.promise]);
  } finally {
    ending.abort();
    clearInterval(ticking);
    agent.destroy();
  }
  return { seconds: elapsed(), firstByteMs: firstByteMs.sort((a, b) => a - b) };
}

function sendOne(exchange: Exchange, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const request = httpRequest(exchange.url, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(exchange.body),
        authorization: `Bearer ${exchange.apiKey}`,
      },
    });
    request.on("error", reject);
    request.on("response", (answer) => {
      let firstMs = 0;
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        if (bytes === 0) firstMs = performance.now() - startedMs;
        bytes += chunk.length;
      });
      answer.on("error", reject);
      answer.on("end", () => {
        if (answer.statusCode === 200 && exchange.isWhole(bytes)) resolve(firstMs);
        else reject(new Error(`${exchange.url} answered ${answer.statusCode} with ${bytes} bytes`));
      });
    });
    request.end(exchange.body);
  });
}

/** The value below which the share `quantile` of ascending values lies. */
export function quantileOf(ascending: readonly number[], quantile: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * quantile))] ?? Number.NaN;
}

/** The value in the middle, or the mean of the two there; NaN of none. */
export function medianOf(values: readonly number[]): number {
  const ascending = [...values].sort((a, b) => a - b);
  const half = ascending.length / 2;
  const [lower = Number.NaN, upper = Number.NaN] = [
    ascending[Math.ceil(half) - 1],
    ascending[Math.floor(half)],
  ];
  return (lower + upper) / 2;
}

/** How much `y` grows with each `x`, by least squares; NaN of less than two points. */
export function slopeOf(points: readonly { readonly x: number; readonly y: number }[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  const sum = (of: (point: (typeof points)[number]) => number) =>
    points.reduce((total, point) => total + of(point), 0);
  return sum((point) => (point.x - x) * (point.y - y)) / sum((point) => (point.x - x) ** 2);
}
