import "./credits.css";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { answerOf } from "../../api/api.ts";
import { CodeBlock } from "../../kit/code-block.tsx";
import { nanoUsdOf } from "../../kit/money.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import { PageHeader } from "../../kit/page-header.tsx";
import { QueryView } from "../../kit/query-view.tsx";
import { KeyGate } from "../../session/key-gate.tsx";
import { useApi } from "../../session/session-context.tsx";
import { Ledger } from "./ledger.tsx";

/** What the account has, and what moved it. */
export function CreditsPage() {
  return (
    <div className="page-credits">
      <PageHeader title="Credits">
        What the account was granted, what it has spent, and every movement in between, exact to the billionth
        of a dollar.
      </PageHeader>
      <KeyGate needs="management">
        <div className="stack">
          <Balance />
          <Ledger />
          <Granting />
        </div>
      </KeyGate>
    </div>
  );
}

function Balance() {
  const api = useApi("management");
  const credits = useQuery({
    queryKey: ["credits"],
    queryFn: async () => (await answerOf(api.GET("/credits"))).data,
    refetchInterval: 5000,
  });
  return (
    <QueryView query={credits} lines={2}>
      {({ total_credits, total_usage, held }) => {
        const balance = nanoUsdOf(total_credits) - nanoUsdOf(total_usage);
        const free = balance - nanoUsdOf(held);
        return (
          <dl className="card figures">
            <Figure title="Balance" note="granted less spent">
              <MoneyText usd={balance} />
            </Figure>
            <Figure title="Held" note="by requests under way">
              <MoneyText usd={held} />
            </Figure>
            <Figure title="Free" note={free > 0n ? "for new requests" : "new requests are refused"}>
              <MoneyText usd={free} />
            </Figure>
            <Figure title="Spent" note="in all">
              <MoneyText usd={total_usage} />
            </Figure>
            <Figure title="Granted" note="less what was taken back">
              <MoneyText usd={total_credits} />
            </Figure>
          </dl>
        );
      }}
    </QueryView>
  );
}

function Figure({ title, note, children }: { title: string; note: string; children: ReactNode }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd className="figure number">{children}</dd>
      <dd className="soft small">{note}</dd>
    </div>
  );
}

function Granting() {
  return (
    <section className="card" aria-labelledby="granting">
      <div>
        <h2 id="granting">More credit</h2>
        <p className="soft">
          Whoever operates the gateway grants it, where it runs; here, 10 US dollars. It is on this page at
          once.
        </p>
      </div>
      <CodeBlock code="npm run admin -- credit grant 10" what="the line that grants 10 US dollars" />
    </section>
  );
}
