import "./models.css";
import { EmptyState } from "../../kit/empty-state.tsx";
import { PageHeader } from "../../kit/page-header.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { hrefOf, useHashRoute } from "../../route/hash-route.ts";
import { KeyGate } from "../../session/key-gate.tsx";
import { useAnyApi, useApi, useSession } from "../../session/session-context.tsx";
import { ModelDetail } from "./model-detail.tsx";
import { ModelList } from "./model-list.tsx";
import { type AnyApi, useModels } from "./model-queries.ts";

/** What can be used, what it can do, what it costs, and how it sounds. */
export function ModelsPage() {
  const { keys } = useSession();
  const any = useAnyApi();
  const management = useApi("management");
  const inference = useApi("inference");
  // A key that was refused leaves the page as it is, below the field for another one.
  const kind = any?.kind ?? (keys.inference === undefined && keys.management ? "management" : "inference");
  return (
    <div className="page-models">
      <PageHeader title="Models">
        What can be used now, what it can do and what it costs. Any key shows them; an inference key lets you
        hear the voices.
      </PageHeader>
      <KeyGate needs={kind}>
        <ModelsView api={kind === "management" ? management : inference} />
      </KeyGate>
    </div>
  );
}

function ModelsView({ api }: { api: AnyApi }) {
  const models = useModels(api);
  const { rest } = useHashRoute();
  const id = rest.join("/");
  return (
    <QueryView query={models} lines={8}>
      {(all) => {
        if (id === "") return <ModelList models={all} />;
        const model = all.find((each) => each.id === id);
        return (
          <>
            <p>
              <a href={hrefOf(["models"])}>← All models</a>
            </p>
            {model === undefined ? (
              <UnknownModel id={id} />
            ) : (
              <ModelDetail key={id} api={api} model={model} />
            )}
          </>
        );
      }}
    </QueryView>
  );
}

function UnknownModel({ id }: { id: string }) {
  return (
    <section className="card">
      <EmptyState title="There is no such model here">
        <p className="anywhere">
          Nobody who is switched on offers <code>{id}</code>.
        </p>
      </EmptyState>
    </section>
  );
}
