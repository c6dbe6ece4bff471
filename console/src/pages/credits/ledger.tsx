import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import type { components } from "../../../gen/openapi.ts";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { Badge } from "../../kit/badge.tsx";
import { type Column, DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { nanoUsdOf } from "../../kit/money.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import { Skeleton } from "../../kit/skeleton.tsx";
import { TimeText } from "../../kit/time-text.tsx";
import { hrefOf } from "../../route/hash-route.ts";
import { useApi } from "../../session/session-context.tsx";

type Entry = components["schemas"]["Ledger"]["data"][number];

const pageSize = 25;

/** Every grant, charge and correction, the newest first. */
export function Ledger() {
  const api = useApi("management");
  const ledger = useInfiniteQuery({
    queryKey: ["ledger"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor }) => {
      const query = cursor === undefined ? { limit: pageSize } : { limit: pageSize, cursor };
      return answerOf(api.GET("/credits/ledger", { params: { query } }));
    },
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  });
  const queries = useQueryClient();
  const refresh = () => {
    void queries.invalidateQueries({ queryKey: ["credits"] });
    void ledger.refetch();
  };
  const { data, error, isPending, isFetching, isFetchingNextPage, refetch } = ledger;
  return (
    <section className="card" aria-labelledby="ledger">
      <div className="card-head">
        <h2 id="ledger">Ledger</h2>
        <ActionButton compact isPending={isFetching && !isFetchingNextPage} onPress={refresh}>
          Refresh
        </ActionButton>
      </div>
      {isPending && <Skeleton lines={6} />}
      {data !== undefined && <Entries entries={data.pages.flatMap((page) => page.data)} />}
      {error !== null && (
        <FailureNotice
          failure={error}
          onRetry={() => void (data === undefined ? refetch() : ledger.fetchNextPage())}
        />
      )}
      {ledger.hasNextPage && (
        <div className="row">
          <ActionButton isPending={isFetchingNextPage} onPress={() => void ledger.fetchNextPage()}>
            Show older entries
          </ActionButton>
        </div>
      )}
    </section>
  );
}

function Entries({ entries }: { entries: readonly Entry[] }) {
  return (
    <DataTable
      caption="Ledger, newest first"
      columns={columns}
      rows={entries}
      keyOf={({ type, generation_id, grant_id, created_at }) =>
        `${type} ${generation_id ?? grant_id} ${created_at}`
      }
      empty={
        <EmptyState title="Nothing has moved yet">
          <p>Grants stand here as soon as there is one, charges when a request has ended.</p>
        </EmptyState>
      }
    />
  );
}

const columns: readonly Column<Entry>[] = [
  { title: "When", cell: ({ created_at }) => <TimeText at={created_at} /> },
  {
    title: "What",
    cell: ({ type }) => <Badge {...(type === "charge" ? {} : { tone: tones[type] })}>{type}</Badge>,
  },
  {
    title: "Amount",
    isNumber: true,
    cell: ({ type, amount }) => {
      const nanoUsd = nanoUsdOf(amount);
      return <MoneyText usd={type === "grant" ? nanoUsd : -nanoUsd} />;
    },
  },
  { title: "For", cell: (entry) => <Reference {...entry} /> },
];

const tones = { grant: "good", correction: "warn" } as const;

function Reference({ generation_id, grant_id }: Pick<Entry, "generation_id" | "grant_id">) {
  if (generation_id === null) return <span className="reference">{grant_id}</span>;
  return (
    <a className="reference" href={hrefOf(["requests", generation_id])}>
      {generation_id}
    </a>
  );
}
