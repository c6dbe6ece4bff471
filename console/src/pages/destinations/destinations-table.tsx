import { Badge } from "../../kit/badge.tsx";
import { type Column, DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { hrefOf } from "../../route/hash-route.ts";
import { DestinationActions } from "./destination-actions.tsx";
import { type DestinationRecord, stateOf, titleOf } from "./destination-record.ts";
import { destinationTypes } from "./destination-type.ts";

const columns: readonly Column<DestinationRecord>[] = [
  { title: "Destination", cell: (record) => <Name record={record} /> },
  { title: "State", cell: (record) => <State record={record} /> },
  { title: "Actions", cell: (record) => <DestinationActions record={record} /> },
];

/** The account's destinations. */
export function DestinationsTable({ records }: { records: readonly DestinationRecord[] }) {
  return (
    <DataTable
      caption="Destinations"
      columns={columns}
      rows={records}
      keyOf={({ id }) => id}
      empty={
        <section className="card">
          <EmptyState title="No destinations yet">
            <p>Create one, test it, and what your requests did arrives there.</p>
          </EmptyState>
        </section>
      }
    />
  );
}

function Name({ record }: { record: DestinationRecord }) {
  const type = destinationTypes.find(({ id }) => id === record.type)?.title ?? record.type;
  return (
    <div className="destination-name">
      <a href={hrefOf(["destinations", record.id])}>{titleOf(record)}</a>
      <span className="soft small">{type}</span>
    </div>
  );
}

/** How a destination stands, and why. */
export function State({ record }: { record: DestinationRecord }) {
  const { word, tone } = stateOf(record);
  return (
    <div className="destination-state">
      <Badge tone={tone}>{word}</Badge>
      {record.last_failure !== null && <span className="small">{record.last_failure}</span>}
    </div>
  );
}
