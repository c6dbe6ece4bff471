import "./requests.css";
import { useMemo } from "react";
import { ActionButton } from "../../kit/action-button.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { PageHeader } from "../../kit/page-header.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { go, hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { KeyGate } from "../../session/key-gate.tsx";
import { CsvButton } from "./csv-button.tsx";
import { type Filter, filterOf } from "./filter.ts";
import { FilterBar } from "./filter-bar.tsx";
import { RequestDialog } from "./request-detail.tsx";
import { useRequests, useShowWhileIdle } from "./requests-query.ts";
import { RequestsTable } from "./requests-table.tsx";

/** Every generation, newest first, as they end. */
export function RequestsPage() {
  return (
    <div className="page-requests">
      <PageHeader title="Requests">
        Every request that reached a provider, what ended last first. New ones appear by themselves. Times are
        your own; those of the filter are UTC.
      </PageHeader>
      <KeyGate needs="management">
        <Requests />
      </KeyGate>
    </div>
  );
}

function Requests() {
  const { rest, query } = useHashRoute();
  const address = query.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(address)), [address]);
  // "The last hour" is the one before it was chosen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter is asked for now.
  const now = useMemo(() => new Date(), [filter]);
  const requests = useRequests(filter, now);
  const change = (changed: Partial<Filter>) => go(hrefOf(["requests"], { ...filter, ...changed }));
  return (
    <>
      <FilterBar filter={filter} onChange={change} />
      <RequestList filter={filter} {...requests} />
      {requests.rows.length > 0 && <CsvButton filter={filter} now={now} />}
      <RequestDialog
        id={rest[0]}
        rows={requests.rows}
        onClose={() => go(hrefOf(["requests"], { ...filter }))}
      />
    </>
  );
}

type RequestListProps = ReturnType<typeof useRequests> & { readonly filter: Filter };

function RequestList({ filter, list, look, rows, fresh, show }: RequestListProps) {
  const count = fresh.rows.length;
  useShowWhileIdle(count, show);
  return (
    <section className="requests-list" aria-label="Requests">
      {count > 0 && (
        <div className="fresh" role="status">
          <ActionButton compact look="primary" onPress={show}>
            {fresh.hasGap
              ? `${count} or more new requests`
              : `${count} new ${count === 1 ? "request" : "requests"}`}
          </ActionButton>
        </div>
      )}
      {look.error !== null && list.error === null && (
        <FailureNotice failure={look.error} onRetry={() => void look.refetch()} />
      )}
      <QueryView query={list} lines={10}>
        {() => <RequestsTable rows={rows} filter={filter} />}
      </QueryView>
      {list.hasNextPage && (
        <div className="more">
          <ActionButton isPending={list.isFetchingNextPage} onPress={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? "Loading …" : "Show older ones"}
          </ActionButton>
        </div>
      )}
    </section>
  );
}
