import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { expect } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import type { NeighbourOptions, NeighbourReport } from "./neighbour.ts";

/** Heap of the process that is attacked, MiB; buffers and decoded images lie outside of it. */
const heapMib = 512;
/**
 * The most that it may hold in all, MiB, which docs/security.md promises: about 220 when idle, 256 of references and 320
 * of decoding by their budgets, and what the allocator has not given back.
 */
const mostResidentMib = 896;
/**
 * The longest that a neighbour may wait for an answer that needs no work, milliseconds. What was mended held the loop
 * for seconds; the promise for one body is 50 ms, which a machine that runs other tests can't show.
 */
const longestWaitMs = 4000;

/** The process that is attacked, and the keys of whoever attacks and of whoever lives beside them. */
export interface Target extends TestStandalone {
  /** An inference key that no attack uses. */
  readonly neighbourKey: string;
}

/** What an attack did to others. */
export interface Damage {
  readonly name: string;
  /** The neighbour's longest wait. */
  readonly waitMs: number;
  /** Peak of the resident memory, and what it was before. */
  readonly peakMib: number;
  readonly beforeMib: number;
  /** Answers that the neighbour did not get as it should. */
  readonly faults: readonly string[];
}

/** Starts everything in one process whose heap is as small as a container's may be. */
export async function startTarget(env: Record<string, string> = {}): Promise<Target> {
  const standalone = await startTestStandalone({
    NODE_OPTIONS: `--max-old-space-size=${heapMib}`,
    RATE_LIMIT_PER_MINUTE: "100000",
    ANONYMOUS_LIMIT_PER_MINUTE: "100000",
    ...env,
  });
  return { ...standalone, neighbourKey: await inferenceKeyOf(standalone) };
}

async function inferenceKeyOf({ baseUrl, managementKey }: TestStandalone): Promise<string> {
  const response = await fetch(`${baseUrl}/api/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${managementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "neighbour" }),
  });
  const { key } = (await response.json()) as { key?: string };
  if (key === undefined) throw new Error(`no key for the neighbour: ${response.status}`);
  return key;
}

/** A key that nobody has. */
export const unknownKey = generateApiKey();

const damages: Damage[] = [];

/** Runs an attack beside a neighbour who asks all the time, and keeps what it did to them for the table. */
export async function underAttack(
  target: Target,
  name: string,
  attack: () => Promise<unknown>,
): Promise<Damage> {
  const beforeMib = memoryMib(target, "VmRSS");
  forgetPeak(target);
  const leave = await settleNeighbour(target);
  let report: NeighbourReport;
  try {
    await attack();
  } finally {
    report = await leave();
  }
  const peakMib = memoryMib(target, "VmHWM");
  const damage = { name, waitMs: report.longestWaitMs, peakMib, beforeMib, faults: report.faults };
  damages.push(damage);
  return damage;
}

/** Prints the worst of what was measured, a line an attack. */
export function printDamages(title: string): void {
  const lines = damages
    .splice(0)
    .map(({ name, waitMs, peakMib, beforeMib }) =>
      [
        waitMs.toFixed(0).padStart(7),
        beforeMib.toFixed(0).padStart(7),
        peakMib.toFixed(0).padStart(7),
        ` ${name}`,
      ].join(""),
    );
  process.stdout.write(
    `${title}: neighbour waits ms, resident MiB before and at its peak\n${lines.join("\n")}\n`,
  );
}

/** Nobody went without an answer, waited for long, or could have died with the process for want of memory. */
export function expectUnharmed({ faults, waitMs, peakMib }: Damage): void {
  expect(faults).toEqual([]);
  expect(waitMs).toBeLessThan(longestWaitMs);
  expect(peakMib).toBeLessThan(mostResidentMib);
}

/** Resolves when the neighbour is there, with what makes it leave. */
async function settleNeighbour({ restPort, neighbourKey }: Target): Promise<() => Promise<NeighbourReport>> {
  const workerData: NeighbourOptions = { port: restPort, key: neighbourKey };
  const worker = new Worker(new URL("./neighbour.ts", import.meta.url), { workerData });
  await once(worker, "message");
  return async () => {
    const report = once(worker, "message");
    worker.postMessage("leave");
    const [said] = await report;
    return said as NeighbourReport;
  };
}

function memoryMib({ child }: Target, which: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  return Number(new RegExp(`^${which}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
}

/** proc(5), clear_refs: 5 makes the peak what is resident now. */
function forgetPeak({ child }: Target): void {
  writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
}
