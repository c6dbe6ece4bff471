import type { Target } from "./targets.ts";

const calls = ["Reserve", "Settle"] as const;

/**
 * Prints what holding credit and settling added to each request's latency: the mean time that account took for such a
 * call, and how many requests shared one.
 */
export async function printMoneyLatency(targets: readonly Target[], requests: number): Promise<void> {
  console.log("calls to account: mean time, and requests that shared a call:");
  for (const { name, accountMetricsUrl } of targets) {
    if (accountMetricsUrl === undefined) continue;
    const text = await (await fetch(accountMetricsUrl, { signal: AbortSignal.timeout(10_000) })).text();
    const columns = calls.map((call) => {
      const seconds = sumOf(text, call, "sum");
      const count = sumOf(text, call, "count");
      return `${call} ${((seconds / count) * 1000).toFixed(2)} ms, ${(requests / count).toFixed(1)}`;
    });
    console.log(`  ${name.padEnd(14)}${columns.join("    ")}`);
  }
}

/** Sums the series of a call's duration, in seconds or in calls. */
function sumOf(text: string, call: string, what: "sum" | "count"): number {
  const line = new RegExp(
    `^rpc_server_call_duration_seconds_${what}\\{[^}]*AccountInternalService/${call}"[^}]*\\} (\\S+)`,
    "gm",
  );
  return [...text.matchAll(line)].reduce((sum, [, value]) => sum + Number(value), 0);
}
