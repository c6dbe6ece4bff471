import { Agent, request as httpRequest } from "node:http";

/** One target and what to ask of it. */
export interface Load {
  /** URL of the operation. */
  readonly url: string;
  readonly apiKey: string;
  /** JSON body of every request. */
  readonly body: string;
  /** Whether an answer of so many bytes is the whole one; the run fails on any other. */
  readonly isWhole: (bytes: number) => boolean;
  readonly requests: number;
  /** Requests in flight at any moment. */
  readonly concurrency: number;
}

/** What a run took. */
export interface LoadResult {
  readonly seconds: number;
  /** Time to first byte of each request, milliseconds, ascending. */
  readonly firstByteMs: readonly number[];
}

/** Sends `requests` requests, `concurrency` at a time; throws when one does not answer whole. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.concurrency });
  const firstByteMs: number[] = [];
  let sent = 0;
  const startedMs = performance.now();
  const worker = async () => {
    while (sent < load.requests) {
      sent += 1;
      firstByteMs.push(await sendOne(load, agent));
    }
  };
  await Promise.all(Array.from({ length: load.concurrency }, worker));
  const seconds = (performance.now() - startedMs) / 1000;
  agent.destroy();
  return { seconds, firstByteMs: firstByteMs.sort((a, b) => a - b) };
}

function sendOne(load: Load, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const request = httpRequest(load.url, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(load.body),
        authorization: `Bearer ${load.apiKey}`,
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
        if (answer.statusCode === 200 && load.isWhole(bytes)) resolve(firstMs);
        else reject(new Error(`${load.url} answered ${answer.statusCode} with ${bytes} bytes`));
      });
    });
    request.end(load.body);
  });
}

/** The value below which the share `quantile` of ascending values lies. */
export function quantileOf(ascending: readonly number[], quantile: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * quantile))] ?? Number.NaN;
}
