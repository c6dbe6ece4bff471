import "./provider-keys.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { PageHeader } from "../../kit/page-header.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { KeyGate } from "../../session/key-gate.tsx";
import { useApi, useIsHeld } from "../../session/session-context.tsx";
import { AddProviderKeyForm } from "./add-provider-key-form.tsx";
import { ProviderKeysTable } from "./provider-keys-table.tsx";

/** The account's own keys at providers. */
export function ProviderKeysPage() {
  const isHeld = useIsHeld("management");
  const [isAdding, setAdding] = useState(false);
  const add = isHeld && !isAdding && (
    <ActionButton look="primary" onPress={() => setAdding(true)}>
      Add a provider key
    </ActionButton>
  );
  return (
    <div className="page-provider-keys">
      <PageHeader title="Provider keys" actions={add}>
        With a key of your own, a provider serves you on your account there: it is tried before the
        operator's, the provider charges you, and the gateway takes its fee only.
      </PageHeader>
      <KeyGate needs="management">
        <ProviderKeys isAdding={isAdding} onAddingEnd={() => setAdding(false)} />
      </KeyGate>
    </div>
  );
}

function ProviderKeys({ isAdding, onAddingEnd }: { isAdding: boolean; onAddingEnd: () => void }) {
  const api = useApi("management");
  const keys = useQuery({
    queryKey: ["provider-keys"],
    queryFn: async () => (await answerOf(api.GET("/byok"))).data,
    refetchInterval: 15_000,
  });
  const providers = useQuery({
    queryKey: ["providers", "management"],
    queryFn: async () => (await answerOf(api.GET("/providers"))).data,
  });
  const all = providers.data ?? [];
  const free = all.filter(
    ({ slug, takes_own_keys }) => takes_own_keys && !keys.data?.some(({ provider }) => provider === slug),
  );
  return (
    <div className="stack">
      {isAdding && (
        <QueryView query={providers}>
          {() => <AddProviderKeyForm providers={free} onEnd={onAddingEnd} />}
        </QueryView>
      )}
      <QueryView query={keys} lines={6}>
        {(records) => (
          <ProviderKeysTable
            records={records}
            nameOf={(slug) => all.find((provider) => provider.slug === slug)?.name ?? slug}
          />
        )}
      </QueryView>
    </div>
  );
}
