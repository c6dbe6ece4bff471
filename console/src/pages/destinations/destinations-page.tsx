import "./destinations.css";
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
import { CreateDestinationForm } from "./create-destination-form.tsx";
import { DestinationDetail } from "./destination-detail.tsx";
import { DestinationsTable } from "./destinations-table.tsx";

const pageSize = 50;

/** Where the account's usage events are delivered. */
export function DestinationsPage() {
  const isHeld = useIsHeld("management");
  const [isMaking, setMaking] = useState(false);
  const [id] = useHashRoute().rest;
  const create = isHeld && !isMaking && id === undefined && (
    <ActionButton look="primary" onPress={() => setMaking(true)}>
      Create a destination
    </ActionButton>
  );
  return (
    <div className="page-destinations">
      <PageHeader title="Destinations" actions={create}>
        Every request leaves one event, delivered within about a second to your own collector, bucket or
        webhook. Events carry no prompt, text, audio or image.
      </PageHeader>
      <KeyGate needs="management">
        {id === undefined ? (
          <div className="stack">
            {isMaking && <CreateDestinationForm onEnd={() => setMaking(false)} />}
            <Destinations />
          </div>
        ) : (
          <DestinationDetail key={id} id={id} />
        )}
      </KeyGate>
    </div>
  );
}

function Destinations() {
  const api = useApi("management");
  const offset = Number(/^\d{1,6}$/.exec(useHashRoute().query.get("offset") ?? "")?.[0] ?? 0);
  const destinations = useQuery({
    queryKey: ["destinations", "all", offset],
    queryFn: () =>
      answerOf(api.GET("/observability/destinations", { params: { query: { offset, limit: pageSize } } })),
    refetchInterval: 10_000,
  });
  return (
    <QueryView query={destinations} lines={6}>
      {({ data, total_count }) => (
        <>
          <DestinationsTable records={data} />
          <ListPager
            offset={offset}
            count={data.length}
            total={total_count}
            size={pageSize}
            onGo={(next) => go(hrefOf(["destinations"], { offset: next === 0 ? "" : String(next) }))}
          />
        </>
      )}
    </QueryView>
  );
}
