import "./keys.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answerOf } from "../../api/api.ts";
import { ActionButton } from "../../kit/action-button.tsx";
import { ListPager } from "../../kit/list-pager.tsx";
import { PageHeader } from "../../kit/page-header.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { go, hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { KeyGate } from "../../session/key-gate.tsx";
import { useApi, useIsHeld } from "../../session/session-context.tsx";
import { CreateKeyForm } from "./create-key-form.tsx";
import { FreshKeyCard } from "./fresh-key-card.tsx";
import type { FreshKey } from "./key-record.ts";
import { KeysTable } from "./keys-table.tsx";

const pageSize = 50;

/** What the account's keys are and spend. */
export function KeysPage() {
  const isHeld = useIsHeld("management");
  const [isMaking, setMaking] = useState(false);
  const create = isHeld && !isMaking && (
    <ActionButton look="primary" onPress={() => setMaking(true)}>
      Create a key
    </ActionButton>
  );
  return (
    <div className="page-keys">
      <PageHeader title="Keys" actions={create}>
        Each program that calls the gateway has a key of its own: it can be limited, rotated and taken away
        without touching the others.
      </PageHeader>
      <KeyGate needs="management">
        <Keys isMaking={isMaking} onMakingEnd={() => setMaking(false)} />
      </KeyGate>
    </div>
  );
}

function Keys({ isMaking, onMakingEnd }: { isMaking: boolean; onMakingEnd: () => void }) {
  const api = useApi("management");
  const [fresh, setFresh] = useState<FreshKey>();
  const offset = Number(/^\d{1,6}$/.exec(useHashRoute().query.get("offset") ?? "")?.[0] ?? 0);
  const keys = useQuery({
    queryKey: ["keys", "all", offset],
    queryFn: () =>
      answerOf(api.GET("/keys", { params: { query: { offset, limit: pageSize, include_disabled: true } } })),
    refetchInterval: 15_000,
  });
  const own = useQuery({
    queryKey: ["key", "management"],
    queryFn: async () => (await answerOf(api.GET("/key"))).data,
  });
  const made = (key: FreshKey) => {
    setFresh(key);
    onMakingEnd();
  };
  return (
    <div className="stack">
      {fresh !== undefined && (
        <FreshKeyCard key={fresh.secret} fresh={fresh} onClose={() => setFresh(undefined)} />
      )}
      {isMaking && <CreateKeyForm onMade={made} onCancel={onMakingEnd} />}
      <QueryView query={keys} lines={8}>
        {({ data, total_count }) => (
          <>
            <KeysTable records={data} ownHash={own.data?.hash} onRotated={setFresh} />
            <ListPager
              offset={offset}
              count={data.length}
              total={total_count}
              size={pageSize}
              onGo={(next) => go(hrefOf(["keys"], { offset: next === 0 ? "" : String(next) }))}
            />
          </>
        )}
      </QueryView>
    </div>
  );
}
