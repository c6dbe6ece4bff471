/**
 * What becomes of many paced streams that begin at once, through gateway, speech and account as processes of their own:
 * how many were served and how long they took, how many were refused and how soon, and what else happened.
 * `node bench/burst.ts --streams 1000 --rounds 3 --most 512`
 */
import { Agent, request as httpRequest } from "node:http";
import { parseArgs } from "node:util";
import { quantileOf } from "./load.ts";
import { startProcesses, startUpstream, type Target } from "./targets.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "1000" },
    /** MAX_INFLIGHT_REQUESTS of every process; its default unless given. */
    most: { type: "string" },
    rounds: { type: "string", default: "3" },
    /** Of each stream, pieces of 4 KiB, 100 ms apart. */
    pieces: { type: "string", default: "20" },
  },
});
const streams = Number(values.streams);
const answerBytes = Number(values.pieces) * 4096;
const deadlineMs = 60_000;

interface Result {
  /** A status, `cut`, or the code of an error of the connection. */
  readonly outcome: string;
  readonly firstByteMs: number;
  readonly wholeMs: number;
  readonly retryAfter: string | undefined;
}

function stream({ baseUrl, apiKey }: Target, agent: Agent): Promise<Result> {
  const startedMs = performance.now();
  const sinceMs = () => performance.now() - startedMs;
  return new Promise((resolve) => {
    let firstByteMs = 0;
    let bytes = 0;
    let retryAfter: string | undefined;
    const end = (outcome: string) => resolve({ outcome, firstByteMs, wholeMs: sinceMs(), retryAfter });
    const request = httpRequest(`${baseUrl}/audio/speech`, {
      method: "POST",
      agent,
      signal: AbortSignal.timeout(deadlineMs),
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    });
    request.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.name));
    request.on("response", (answer) => {
      retryAfter = answer.headers["retry-after"];
      answer.on("data", (chunk: Buffer) => {
        if (bytes === 0) firstByteMs = sinceMs();
        bytes += chunk.length;
      });
      answer.on("error", () => end("cut"));
      answer.on("end", () =>
        end(answer.statusCode === 200 && bytes !== answerBytes ? "short" : `${answer.statusCode}`),
      );
    });
    const marker = `[[audio=${answerBytes} chunk=4096 interval=100]]`;
    const body = { model: "openai/tts-1", input: `Hello. ${marker}`, voice: "alloy", response_format: "pcm" };
    request.end(JSON.stringify(body));
  });
}

function print(results: readonly Result[]): void {
  for (const outcome of [...new Set(results.map((result) => result.outcome))].sort()) {
    const of = results.filter((result) => result.outcome === outcome);
    const quantiles = (figure: "firstByteMs" | "wholeMs") => {
      const sorted = of.map((result) => result[figure]).sort((a, b) => a - b);
      return [0.5, 0.99, 1].map((quantile) => quantileOf(sorted, quantile).toFixed(0)).join(" / ");
    };
    const waits = [...new Set(of.map(({ retryAfter }) => retryAfter))].sort().join(",");
    console.log(
      `${outcome}: ${of.length}, first byte p50/p99/max ${quantiles("firstByteMs")} ms, ` +
        `whole ${quantiles("wholeMs")} ms, retry-after ${waits || "none"}`,
    );
  }
}

const upstream = await startUpstream();
const target = await startProcesses(
  upstream.baseUrl,
  values.most === undefined ? {} : { MAX_INFLIGHT_REQUESTS: values.most },
);
try {
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const agent = new Agent({ keepAlive: false });
    console.log(`round ${round + 1}: ${streams} streams at once`);
    print(await Promise.all(Array.from({ length: streams }, () => stream(target, agent))));
  }
} finally {
  await target.stop();
  await upstream.stop();
}
