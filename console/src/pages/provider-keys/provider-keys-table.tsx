import { Badge } from "../../kit/badge.tsx";
import { type Column, DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { TimeText } from "../../kit/time-text.tsx";
import { ProviderKeyActions } from "./provider-key-actions.tsx";
import type { ProviderKeyRecord } from "./provider-key-record.ts";

interface ProviderKeysTableProps {
  readonly records: readonly ProviderKeyRecord[];
  readonly nameOf: (slug: string) => string;
}

/** The account's own keys at providers, masked. */
export function ProviderKeysTable({ records, nameOf }: ProviderKeysTableProps) {
  const columns: readonly Column<ProviderKeyRecord>[] = [
    {
      title: "Provider",
      cell: ({ provider, name }) => (
        <div className="provider-key-name">
          <span>{nameOf(provider)}</span>
          {name !== null && <span className="soft small">{name}</span>}
        </div>
      ),
    },
    { title: "Key", cell: ({ label }) => <code>{label}</code> },
    {
      title: "State",
      cell: ({ disabled }) =>
        disabled ? <Badge tone="bad">disabled</Badge> : <Badge tone="good">in use</Badge>,
    },
    { title: "Stored", cell: ({ created_at }) => <TimeText at={created_at} /> },
    {
      title: "Actions",
      cell: (record) => <ProviderKeyActions record={record} providerName={nameOf(record.provider)} />,
    },
  ];
  return (
    <DataTable
      caption="Your own provider keys"
      columns={columns}
      rows={records}
      keyOf={({ id }) => id}
      empty={
        <section className="card">
          <EmptyState title="No provider keys of your own">
            <p>
              Requests are served with the operator's keys. Add a key of yours, and its provider serves you on
              your account there from then on.
            </p>
          </EmptyState>
        </section>
      }
    />
  );
}
