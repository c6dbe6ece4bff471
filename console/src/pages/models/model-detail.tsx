import { Badge } from "../../kit/badge.tsx";
import { CopyButton } from "../../kit/copy-button.tsx";
import { DataTable } from "../../kit/data-table.tsx";
import { EmptyState } from "../../kit/empty-state.tsx";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { ErrorShareText, HealthBadge, LastErrorText, MillisecondsText } from "../../kit/health-text.tsx";
import { KeyGate } from "../../session/key-gate.tsx";
import { Capabilities } from "./capabilities.tsx";
import { PriceList } from "./model-list.tsx";
import { type AnyApi, isSpeechModel, type Model, useEndpoints } from "./model-queries.ts";
import { VoicesCard } from "./voices-card.tsx";

/** One model: what it is, who serves it, what can be set, and how its voices sound. */
export function ModelDetail({ api, model }: { api: AnyApi; model: Model }) {
  return (
    <>
      <section className="card" aria-labelledby="model">
        <div className="card-head">
          <h2 id="model" className="anywhere">
            {model.name}
          </h2>
          <Badge>{isSpeechModel(model) ? "Speech" : "Images"}</Badge>
        </div>
        <p className="anywhere">{model.description}</p>
        <div className="row">
          <code className="anywhere">{model.id}</code>
          <CopyButton text={model.id} what="the model's id" />
        </div>
      </section>
      <ServedBy api={api} model={model} />
      <Capabilities api={api} model={model} />
      {isSpeechModel(model) && (
        <KeyGate needs="inference">
          <VoicesCard model={model} />
        </KeyGate>
      )}
    </>
  );
}

function ServedBy({ api, model }: { api: AnyApi; model: Model }) {
  const health = useEndpoints(api, model.id);
  const rows = model.endpoints.map((endpoint) => ({
    ...endpoint,
    health: health.data?.find(({ tag }) => tag === endpoint.provider_slug)?.health,
  }));
  return (
    <section className="card" aria-labelledby="served-by">
      <div>
        <h2 id="served-by">Who serves it</h2>
        <p className="soft">
          In order of preference; health is what the process that answers saw in the last half hour.
        </p>
      </div>
      {health.error !== null && (
        <FailureNotice failure={health.error} onRetry={() => void health.refetch()} />
      )}
      <DataTable
        caption="Endpoints"
        rows={rows}
        keyOf={({ provider_slug }) => provider_slug}
        columns={[
          { title: "Provider", cell: (row) => row.provider_name },
          { title: "Price", cell: (row) => <PriceList lines={row.pricing} /> },
          { title: "State", cell: ({ health: seen }) => seen && <HealthBadge health={seen} /> },
          {
            title: "Errors",
            cell: ({ health: seen }) => seen && <ErrorShareText health={seen} />,
            isNumber: true,
          },
          {
            title: "First output",
            cell: ({ health: seen }) => seen && <MillisecondsText ms={seen.first_output_ms} />,
            isNumber: true,
          },
          { title: "Last error", cell: ({ health: seen }) => seen && <LastErrorText health={seen} /> },
        ]}
        empty={<EmptyState title="Nobody serves it now" />}
      />
    </section>
  );
}
