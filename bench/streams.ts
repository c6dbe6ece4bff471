/**
 * Many paced streams at once, through the gateway in each of its forms: how many were served and how soon, what a stream
 * holds of memory and takes of CPU, and what else happened. `node bench/streams.ts standalone --streams 2000`; a form is
 * standalone or processes (both unless given). `--most` is MAX_INFLIGHT_REQUESTS, as many as there are streams unless
 * given: with `--most 256 --streams 1000 --ramp 0 --interval 100 --pieces 20` it tells what becomes of those that are
 * too many. The limits of a key (RATE_LIMIT_PER_MINUTE, MAX_INFLIGHT_PER_KEY) are raised as well.
 */
import { Agent, request as httpRequest } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Exchange, quantileOf, runLoad } from "./load.ts";
import { cpuMsOf, memoryMibOf } from "./process-usage.ts";
import { Inspector, inspectable } from "./profile/inspector.ts";
import { formLaunches, pidsOf, type Target, withTargets } from "./targets.ts";
import { speechWorkload, workloads } from "./workloads.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: "string", default: "2000" },
    most: { type: "string" },
    /** Of each stream, of 4 KiB. */
    pieces: { type: "string", default: "60" },
    /** Between them, milliseconds. */
    interval: { type: "string", default: "1000" },
    /** Within how many seconds the streams begin. */
    ramp: { type: "string", default: "20" },
  },
});
const streams = Number(values.streams);
const answerBytes = Number(values.pieces) * 4096;
const streamMs = Number(values.pieces) * Number(values.interval);
const rampMs = Number(values.ramp) * 1000;
const deadlineMs = streamMs + 120_000;
/** A wave opens as many connections as the queue of a listening socket holds. */
const waveMs = 50;

interface Result {
  /** A status, `short`, `cut`, or the code of an error of the connection. */
  readonly outcome: string;
  readonly firstByteMs: number;
  readonly wholeMs: number;
  readonly retryAfter: string | undefined;
}

for (const [form, launch] of Object.entries(formLaunches)) {
  if (positionals.length > 0 && !positionals.includes(form)) continue;
  const raised = { MAX_INFLIGHT_REQUESTS: values.most ?? String(streams) };
  await withTargets([launch], { ...raised, ...inspectable }, async ([target]) => {
    if (target === undefined) return;
    console.log(`${form}: ${streams} streams of ${values.pieces} × 4 KiB, ${values.interval} ms apart`);
    for (const line of target.leftOut) console.log(line);
    await measure(target);
  });
}

async function measure(target: Target): Promise<void> {
  const marker = `audio=${answerBytes} chunk=4096 interval=${values.interval}`;
  const exchange = speechWorkload("stream", streams, marker, answerBytes).exchangeOf(target);
  const pids = pidsOf(target);
  await runLoad([workloads.burst.exchangeOf(target)], { requests: 500, concurrency: 16 });
  const inspectors = await Promise.all(Object.values(target.processes).map(Inspector.connect));
  const liveMib = async () => sum(await Promise.all(inspectors.map((inspector) => inspector.liveHeapMib())));
  const [liveBefore, residentBefore] = [await liveMib(), memoryMibOf(pids)];
  const agent = new Agent({ keepAlive: false });
  const all = Array.from({ length: streams }, async (_, index) => {
    await delay(Math.floor((rampMs * index) / streams / waveMs) * waveMs);
    return stream(exchange, agent);
  });
  // All have begun and none has ended.
  const steadyMs = Math.max(0, streamMs - rampMs) * 0.8;
  await delay(rampMs + steadyMs * 0.1);
  const [beforeMs, began] = [cpuMsOf(pids), performance.now()];
  await delay(steadyMs * 0.8);
  const [usedMs, seconds] = [cpuMsOf(pids) - beforeMs, (performance.now() - began) / 1000];
  const [resident, live] = [memoryMibOf(pids), await liveMib()];
  for (const inspector of inspectors) inspector.close();
  print(await Promise.all(all));
  if (steadyMs === 0) return;
  const each = (((live - liveBefore) * 1024) / streams).toFixed(0);
  console.log(
    `  heap and buffers ${liveBefore.toFixed(0)} MiB before, ${live.toFixed(0)} MiB with them: ${each} KiB a stream`,
  );
  console.log(`  resident ${residentBefore.toFixed(0)} MiB before, ${resident.toFixed(0)} MiB with them`);
  const share = (usedMs / seconds / 10).toFixed(0);
  const piecesPerSecond = (streams * 1000) / Number(values.interval);
  console.log(
    `  CPU of one core ${share} %, ${(usedMs / seconds / piecesPerSecond).toFixed(3)} ms a piece of a stream`,
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function stream({ url, apiKey, body, isWhole }: Exchange, agent: Agent): Promise<Result> {
  const startedMs = performance.now();
  const sinceMs = () => performance.now() - startedMs;
  return new Promise((resolve) => {
    let firstByteMs = 0;
    let bytes = 0;
    let retryAfter: string | undefined;
    const end = (outcome: string) => resolve({ outcome, firstByteMs, wholeMs: sinceMs(), retryAfter });
    const request = httpRequest(url, {
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
        end(answer.statusCode === 200 && !isWhole(bytes) ? "short" : `${answer.statusCode}`),
      );
    });
    request.end(body);
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
      `  ${outcome}: ${of.length}, first byte p50/p99/max ${quantiles("firstByteMs")} ms, ` +
        `whole ${quantiles("wholeMs")} ms, retry-after ${waits || "none"}`,
    );
  }
}
