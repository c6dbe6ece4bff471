import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ActionButton } from "../../kit/action-button.tsx";
import { csvOf } from "../../kit/csv.ts";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { saveFile } from "../../kit/save-file.ts";
import { useApi } from "../../session/session-context.tsx";
import type { Filter } from "./filter.ts";
import { csvColumns, mostCsvRows } from "./requests-csv.ts";
import { type Generation, generationPage } from "./requests-query.ts";

const pageSize = 100;

/** Saves all that the filter lets through, up to a bound of which it tells. */
export function CsvButton({ filter, now }: { filter: Filter; now: Date }) {
  const api = useApi("management");
  const [count, setCount] = useState(0);
  const file = useMutation({
    async mutationFn() {
      const rows: Generation[] = [];
      let cursor: string | undefined;
      do {
        const page = await generationPage(api, filter, { limit: pageSize, cursor }, now);
        rows.push(...page.data);
        setCount(rows.length);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined && rows.length < mostCsvRows);
      saveFile("requests.csv", new Blob([csvOf(csvColumns, rows)], { type: "text/csv;charset=utf-8" }));
      return { rows: rows.length, isCut: cursor !== undefined };
    },
  });
  const { reset } = file;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is said of one filter's file is no word on another's.
  useEffect(() => reset(), [filter, reset]);
  return (
    <div className="csv">
      <ActionButton isPending={file.isPending} onPress={() => file.mutate()}>
        {file.isPending ? `Reading … ${count}` : "Download CSV"}
      </ActionButton>
      <p className="soft small" role="status">
        {file.data === undefined &&
          `All pages of the filter, the newest ${mostCsvRows.toLocaleString()} at most.`}
        {file.data?.isCut === false && `Saved: all ${file.data.rows.toLocaleString()} rows.`}
        {file.data?.isCut === true &&
          `Saved: the newest ${file.data.rows.toLocaleString()} rows. There are more: choose an earlier time for them.`}
      </p>
      {file.error !== null && <FailureNotice failure={file.error} onRetry={() => file.mutate()} />}
    </div>
  );
}
