import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../../test/support/postgres/temporary-directory.ts";
import { parsePrometheusText } from "../../test/support/prometheus-text.ts";
import { reconcileMetrics, writeReconcileMetrics } from "./metrics.ts";

const compared = { holds: 5, records: 4, open: 1, unseen: 2 };

test("what was compared and what differs is exported", async () => {
  const series = parsePrometheusText(await reconcileMetrics(compared, 3, 1_700_000_000_500));
  expect(Object.fromEntries(series.map(({ id, value }) => [id, value]))).toEqual({
    media_gateway_reconcile_differences: 3,
    media_gateway_reconcile_holds: 5,
    media_gateway_reconcile_records: 4,
    media_gateway_reconcile_holds_open: 1,
    media_gateway_reconcile_holds_unseen: 2,
    media_gateway_reconcile_ended_timestamp_seconds: 1_700_000_000.5,
  });
});

test("the file is replaced whole, and nothing is left beside it", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "reconcile.prom");
  await writeFile(path, "old");
  await writeReconcileMetrics(path, compared, 0);
  expect(await readFile(path, "utf8")).toContain("media_gateway_reconcile_differences 0");
  expect(await readdir(directory)).toEqual(["reconcile.prom"]);
});
