import "./health.css";
import { PageHeader } from "../../kit/page-header.tsx";
import { KeyGate } from "../../session/key-gate.tsx";
import { useAnyApi, useApi, useSession } from "../../session/session-context.tsx";
import { EndpointsCard, ProvidersCard } from "./health-cards.tsx";

/** How providers and their endpoints have lately fared. */
export function HealthPage() {
  const { keys } = useSession();
  const any = useAnyApi();
  const management = useApi("management");
  const inference = useApi("inference");
  // A key that was refused leaves the page as it is, below the field for another one.
  const kind = any?.kind ?? (keys.inference === undefined && keys.management ? "management" : "inference");
  const api = kind === "management" ? management : inference;
  return (
    <div className="page-health">
      <PageHeader title="Health">
        What the process that answers saw in the last half hour; with several processes, another may have seen
        other things. Any key shows it, anew every ten seconds.
      </PageHeader>
      <KeyGate needs={kind}>
        <ProvidersCard api={api} />
        <EndpointsCard api={api} />
      </KeyGate>
    </div>
  );
}
