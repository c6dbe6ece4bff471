import { useQuery } from "@tanstack/react-query";
import type { components } from "../../../gen/openapi.ts";
import { answerOf } from "../../api/api.ts";
import { Badge } from "../../kit/badge.tsx";
import { type Column, DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { ListPager } from "../../kit/list-pager.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { TimeText } from "../../kit/time-text.tsx";
import { go, hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { useApi } from "../../session/session-context.tsx";
import { titleOf } from "./destination-record.ts";
import { State } from "./destinations-table.tsx";

type Delivery = components["schemas"]["DeliveryList"]["data"][number];

const pageSize = 50;

/** One destination: its settings, and what was delivered. */
export function DestinationDetail({ id }: { id: string }) {
  const api = useApi("management");
  const destination = useQuery({
    queryKey: ["destinations", id],
    queryFn: async () =>
      (await answerOf(api.GET("/observability/destinations/{id}", { params: { path: { id } } }))).data,
    refetchInterval: 10_000,
  });
  return (
    <div className="stack">
      <a href={hrefOf(["destinations"])}>All destinations</a>
      <QueryView query={destination} lines={3}>
        {(record) => (
          <section className="card" aria-labelledby="destination">
            <div className="card-head">
              <h2 id="destination">{titleOf(record)}</h2>
              <State record={record} />
            </div>
            <dl className="destination-config">
              {Object.entries(record.config)
                .map(([name, value]) => ({ name, text: textOf(value) }))
                .filter(({ text }) => text !== "{}")
                .map(({ name, text }) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>{text}</dd>
                  </div>
                ))}
            </dl>
          </section>
        )}
      </QueryView>
      <Deliveries id={id} />
    </div>
  );
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function Deliveries({ id }: { id: string }) {
  const api = useApi("management");
  const offset = Number(/^\d{1,6}$/.exec(useHashRoute().query.get("offset") ?? "")?.[0] ?? 0);
  const deliveries = useQuery({
    queryKey: ["destinations", id, "deliveries", offset],
    queryFn: () => {
      const params = { path: { id }, query: { offset, limit: pageSize } };
      return answerOf(api.GET("/observability/destinations/{id}/deliveries", { params }));
    },
    refetchInterval: 5000,
  });
  return (
    <section className="card" aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <QueryView query={deliveries} lines={6}>
        {({ data, total_count }) => (
          <>
            <DataTable
              caption="Deliveries, newest first"
              columns={columns}
              rows={data}
              keyOf={(delivery) => `${delivery.id} ${delivery.attempt} ${delivery.attempted_at}`}
              empty={
                <EmptyState title="Nothing was delivered yet">
                  <p>Each attempt stands here for seven days, within about a second of a request's end.</p>
                </EmptyState>
              }
            />
            <ListPager
              offset={offset}
              count={data.length}
              total={total_count}
              size={pageSize}
              onGo={(next) => go(hrefOf(["destinations", id], { offset: next === 0 ? "" : String(next) }))}
            />
          </>
        )}
      </QueryView>
    </section>
  );
}

const tones = { delivered: "good", retrying: "warn", dead: "bad" } as const;

const columns: readonly Column<Delivery>[] = [
  { title: "When", cell: ({ attempted_at }) => <TimeText at={attempted_at} /> },
  { title: "Outcome", cell: ({ status }) => <Badge tone={tones[status]}>{status}</Badge> },
  { title: "Cause", cell: ({ cause }) => <span className="cause">{cause ?? "–"}</span> },
  { title: "Answer", isNumber: true, cell: ({ response_status }) => response_status ?? "none" },
  { title: "Attempt", isNumber: true, cell: ({ attempt }) => attempt },
  { title: "Events", isNumber: true, cell: ({ event_count }) => event_count },
  { title: "Time", isNumber: true, cell: ({ latency_ms }) => `${latency_ms} ms` },
];
