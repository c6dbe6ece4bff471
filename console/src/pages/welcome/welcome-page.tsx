import "./welcome.css";
import { PageHeader } from "../../kit/page-header.tsx";
import { KeyGate } from "../../session/key-gate.tsx";
import { useAnyApi } from "../../session/session-context.tsx";
import { GrantCard } from "./grant-card.tsx";
import { HearCard } from "./hear-card.tsx";
import { ProvidersCard } from "./providers-card.tsx";
import { RecentCard } from "./recent-card.tsx";
import { SeeCard } from "./see-card.tsx";
import { SnippetsCard } from "./snippets-card.tsx";
import { StateCards } from "./state-cards.tsx";

/** Hear it, see it, see what it cost: the first hour with a gateway. */
export function WelcomePage() {
  const any = useAnyApi();
  return (
    <div className="page-welcome">
      <PageHeader title="Welcome">
        This gateway makes speech and images over many providers, behind one interface. Try it here, then call
        it from your own code.
      </PageHeader>
      {any !== undefined && <StateCards />}
      <KeyGate needs="inference">
        <div className="welcome-pair">
          <HearCard />
          <SeeCard />
        </div>
      </KeyGate>
      <SnippetsCard />
      {any !== undefined && (
        <KeyGate needs="management">
          <RecentCard />
        </KeyGate>
      )}
      {any !== undefined && <ProvidersCard any={any} />}
      <GrantCard />
    </div>
  );
}
