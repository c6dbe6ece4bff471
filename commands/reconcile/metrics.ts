import { silentLog } from "../../lib/runtime/log.ts";
import { replaceFile } from "../../lib/runtime/whole-file.ts";
import { Metrics } from "../../lib/telemetry/metrics.ts";
import type { Compared } from "./compare.ts";

/** What a reconciliation has come to, in the format that Prometheus reads. */
export function reconcileMetrics(
  { holds, records, open, unseen }: Compared,
  differences: number,
  endedMs: number,
): Promise<string> {
  const metrics = new Metrics({ log: silentLog });
  const gauge = (name: string, help: string, value: number) =>
    metrics.observe({ name: `media_gateway_reconcile_${name}`, help, kind: "gauge", read: () => value });
  gauge("differences", "Requests, accounts and days whose books differ.", differences);
  gauge("holds", "Holds that were compared.", holds);
  gauge("records", "Usage records that were compared.", records);
  gauge("holds_open", "Holds of requests that had not ended.", open);
  gauge("holds_unseen", "Settled holds whose event was not met on the topic yet.", unseen);
  gauge("ended_timestamp_seconds", "When the last reconciliation ended, Unix seconds.", endedMs / 1000);
  return metrics.scrape();
}

/** Writes them to a file whole or not at all: whoever reads it while it is written sees the one before. */
export async function writeReconcileMetrics(
  path: string,
  compared: Compared,
  differences: number,
): Promise<void> {
  await replaceFile(path, await reconcileMetrics(compared, differences, Date.now()), 0o666);
}
