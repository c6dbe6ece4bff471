import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Day } from "./simulation.ts";

const command = fileURLToPath(new URL("routing-day.ts", import.meta.url));

/** In a process of its own, since it replaces the time of its process. */
async function simulate(seed: number): Promise<Day> {
  const size = ["--hours", "4", "--rate", "0.25", "--seed", String(seed)];
  const { stdout } = await promisify(execFile)(process.execPath, [command, "--json", ...size]);
  return JSON.parse(stdout) as Day;
}

test.each([1, 2])(
  "through a day of outages the gateway answers more than any vendor alone, near the cheapest one's price: seed %i",
  async (seed) => {
    const { gateway, single } = await simulate(seed);
    const best = Math.max(...single.map(({ availability }) => availability));
    const cheapest = Math.min(...single.map(({ usdPerMillion }) => usdPerMillion));
    expect(new Set([gateway, ...single].map(({ requests }) => requests)).size).toBe(1);
    expect(best).toBeLessThan(1);
    expect(1 - gateway.availability).toBeLessThan((1 - best) / 3);
    expect(gateway.usdPerMillion).toBeLessThan(1.6 * cheapest);
  },
);
