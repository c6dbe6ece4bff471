import { Badge } from "../../kit/badge.tsx";
import { DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { MoneyText } from "../../kit/money-text.tsx";
import { TimeText } from "../../kit/time-text.tsx";
import { hrefOf } from "../../route/hash-route.ts";
import type { Filter } from "./filter.ts";
import { isFiltering } from "./filter.ts";
import type { Generation } from "./requests-query.ts";
import { consumed, durationText, mediumOf, toneOf } from "./words.ts";

/** The generations, each with the way to all that is known of it. */
export function RequestsTable({ rows, filter }: { rows: readonly Generation[]; filter: Filter }) {
  return (
    <DataTable
      caption="Requests, what ended last first"
      rows={rows}
      keyOf={({ id }) => id}
      empty={<NoRequests isFiltered={isFiltering(filter)} />}
      columns={[
        {
          title: "Ended",
          cell: (row) => (
            <a href={hrefOf(["requests", row.id], { ...filter })}>
              <TimeText at={row.ended_at} />
              <span className="visually-hidden">
                , {row.model}, {row.outcome}
              </span>
            </a>
          ),
        },
        { title: "Model", cell: (row) => <ModelCell row={row} /> },
        { title: "Key", cell: (row) => <span className="name">{row.api_key_name ?? "Not named"}</span> },
        { title: "Outcome", cell: (row) => <OutcomeCell row={row} /> },
        { title: "Consumed", cell: (row) => <span className="small">{consumed(row)[0] ?? "–"}</span> },
        {
          title: "First byte",
          isNumber: true,
          cell: ({ first_byte_latency: ms }) => (ms === null ? "–" : durationText(ms)),
        },
        {
          title: "Took",
          isNumber: true,
          cell: ({ latency: ms }) => (ms === null ? "–" : durationText(ms)),
        },
        { title: "Cost", isNumber: true, cell: ({ usage }) => <MoneyText usd={usage} /> },
      ]}
    />
  );
}

function ModelCell({ row }: { row: Generation }) {
  return (
    <span className="name">
      {row.model}
      <span className="soft small">
        {mediumOf(row)} · {row.provider_name ?? "no provider"}
      </span>
    </span>
  );
}

function OutcomeCell({ row: { outcome, reason, provider_responses: attempts } }: { row: Generation }) {
  return (
    <span className="outcome">
      <Badge tone={toneOf(outcome)}>{outcome}</Badge>
      {reason !== null && <code className="small">{reason}</code>}
      {attempts.length > 1 && <span className="soft small">{attempts.length} attempts</span>}
    </span>
  );
}

function NoRequests({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <EmptyState title="No request is like that">
      <p>Take a filter away, or wait: what ends from now on appears by itself.</p>
    </EmptyState>
  ) : (
    <EmptyState title="No requests yet">
      <p>
        Each request that reaches a provider appears here within two seconds of its end. Make the first one on{" "}
        <a href="#/">the Welcome page</a>.
      </p>
    </EmptyState>
  );
}
