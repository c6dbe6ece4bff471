import { Badge } from "../../kit/badge.tsx";
import { type Column, DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { TimeText } from "../../kit/time-text.tsx";
import { KeyActions } from "./key-actions.tsx";
import { type FreshKey, type KeyRecord, stateOf } from "./key-record.ts";
import { LimitMeter } from "./limit-meter.tsx";

interface KeysTableProps {
  readonly records: readonly KeyRecord[];
  /** The key that this tab calls with, where it is known. */
  readonly ownHash: string | undefined;
  readonly onRotated: (fresh: FreshKey) => void;
}

/** The account's keys. */
export function KeysTable({ records, ownHash, onRotated }: KeysTableProps) {
  const columns: readonly Column<KeyRecord>[] = [
    { title: "Key", cell: (record) => <KeyName record={record} isOwn={record.hash === ownHash} /> },
    { title: "State", cell: (record) => <KeyState record={record} /> },
    { title: "Spent", cell: (record) => <LimitMeter record={record} /> },
    { title: "Last used", cell: ({ last_used_at: at }) => <Instant at={at} /> },
    { title: "Expires", cell: ({ expires_at: at }) => <Instant at={at} /> },
    {
      title: "Actions",
      cell: (record) => <KeyActions record={record} isOwn={record.hash === ownHash} onRotated={onRotated} />,
    },
  ];
  return (
    <DataTable
      caption="Keys of the account"
      columns={columns}
      rows={records}
      keyOf={({ hash }) => hash}
      empty={
        <EmptyState title="No keys on this page of the list">
          <p>Go back to the first page, or create a key.</p>
        </EmptyState>
      }
    />
  );
}

function KeyName({ record, isOwn }: { record: KeyRecord; isOwn: boolean }) {
  const { name, label, kind, scopes } = record;
  return (
    <div className="key-name">
      <span>{name}</span>
      <code className="soft">{label}</code>
      <span className="row">
        {kind === "management" ? (
          <Badge>management</Badge>
        ) : (
          scopes.map((scope) => <Badge key={scope}>{scope}</Badge>)
        )}
        {isOwn && <Badge tone="good">this tab's</Badge>}
      </span>
    </div>
  );
}

function KeyState({ record }: { record: KeyRecord }) {
  const { word, tone } = stateOf(record, Date.now());
  return <Badge tone={tone}>{word}</Badge>;
}

function Instant({ at }: { at: string | null }) {
  return at === null ? <span className="soft">never</span> : <TimeText at={at} />;
}
