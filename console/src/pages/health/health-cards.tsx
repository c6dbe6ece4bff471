import { DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import {
  ErrorShareText,
  type Health,
  HealthBadge,
  LastErrorText,
  MillisecondsText,
} from "../../kit/health-text.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { hrefOf } from "../../route/hash-route.ts";
import { type AnyApi, useAllEndpoints, useProvidersHealth } from "./all-endpoints.ts";
import { worstFirst } from "./worst-first.ts";

const stateColumn = {
  title: "State",
  cell: ({ health }: { health: Health }) => <HealthBadge health={health} />,
};
const errorColumn = {
  title: "Errors",
  cell: ({ health }: { health: Health }) => <ErrorShareText health={health} />,
  isNumber: true,
};
const lastErrorColumn = {
  title: "Last error",
  cell: ({ health }: { health: Health }) => <LastErrorText health={health} />,
};

const empty = (
  <EmptyState title="No provider is on yet">
    <p>
      The <a href={hrefOf([""])}>first page</a> says how one is switched on.
    </p>
  </EmptyState>
);

/** The providers that are on. */
export function ProvidersCard({ api }: { api: AnyApi }) {
  const providers = useProvidersHealth(api);
  return (
    <section className="card" aria-labelledby="providers">
      <h2 id="providers">Providers</h2>
      <QueryView query={providers} lines={4}>
        {(all) => (
          <DataTable
            caption="Health of providers"
            rows={worstFirst(all)}
            keyOf={({ slug }) => slug}
            columns={[
              { title: "Provider", cell: ({ name }) => name },
              stateColumn,
              errorColumn,
              { title: "Models", cell: ({ models }) => models, isNumber: true },
              lastErrorColumn,
            ]}
            empty={empty}
          />
        )}
      </QueryView>
    </section>
  );
}

/** All endpoints of all models. */
export function EndpointsCard({ api }: { api: AnyApi }) {
  const endpoints = useAllEndpoints(api);
  return (
    <section className="card" aria-labelledby="endpoints">
      <h2 id="endpoints">Endpoints</h2>
      <QueryView query={endpoints} lines={8}>
        {(all) => (
          <DataTable
            caption="Health of endpoints"
            rows={worstFirst(all)}
            keyOf={({ model_id, tag }) => `${model_id} ${tag}`}
            columns={[
              {
                title: "Model",
                cell: ({ model_id: id }) => (
                  <a className="endpoint-model" href={hrefOf(["models", id])}>
                    {id}
                  </a>
                ),
              },
              { title: "Provider", cell: ({ provider_name }) => provider_name },
              stateColumn,
              errorColumn,
              {
                title: "First output",
                cell: ({ health }) => <MillisecondsText ms={health.first_output_ms} />,
                isNumber: true,
              },
              lastErrorColumn,
            ]}
            empty={empty}
          />
        )}
      </QueryView>
    </section>
  );
}
