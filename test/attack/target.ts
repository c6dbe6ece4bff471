import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { expect } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { startTestStandalone, type TestStandalone } from "../support/standalone.ts";

/** Heap of the process that is attacked, MiB; buffers and decoded images lie outside of it. */
const heapMib = 512;
/** The most that it may hold in all, MiB: what docs/security.md promises. */
const mostResidentMib = 1024;
/**
 * The longest that a neighbour may wait for an answer that needs no work, milliseconds. What was mended held the loop
 * for seconds; the promise for one body is 50 ms, which a machine that runs other tests can't show.
 */
const longestWaitMs = 1500;

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
  const neighbour = new Neighbour(target);
  try {
    await attack();
  } finally {
    await neighbour.leave();
  }
  const peakMib = memoryMib(target, "VmHWM");
  const damage = { name, waitMs: neighbour.longestWaitMs, peakMib, beforeMib, faults: neighbour.faults };
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

function memoryMib({ child }: Target, which: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  return Number(new RegExp(`^${which}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
}

/** proc(5), clear_refs: 5 makes the peak what is resident now. */
function forgetPeak({ child }: Target): void {
  writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
}

/** Asks for what needs no work, on a connection of its own, one request after another. */
class Neighbour {
  readonly faults: string[] = [];
  longestWaitMs = 0;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #asking: Promise<void>;
  #leaving = false;

  constructor(target: Target) {
    this.#asking = this.#ask(target);
  }

  async leave(): Promise<void> {
    this.#leaving = true;
    await this.#asking;
    this.#agent.destroy();
  }

  async #ask(target: Target): Promise<void> {
    while (!this.#leaving) {
      const startedMs = performance.now();
      const status = await this.#status(target).catch((thrown: Error) => thrown.message);
      this.longestWaitMs = Math.max(this.longestWaitMs, performance.now() - startedMs);
      if (status !== 200) this.faults.push(`${status}`);
    }
  }

  #status({ restPort, neighbourKey }: Target): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const asked = request(
        {
          port: restPort,
          path: "/api/v1/key",
          agent: this.#agent,
          headers: { authorization: `Bearer ${neighbourKey}` },
        },
        (response) => {
          response.resume().on("end", () => resolve(response.statusCode));
        },
      );
      asked.on("error", reject).end();
    });
  }
}
