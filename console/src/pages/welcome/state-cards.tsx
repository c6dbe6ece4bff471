import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { answerOf } from "../../api/api.ts";
import { FailureNotice } from "../../kit/failure-notice.tsx";
import { nanoUsdOf } from "../../kit/money.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import { Skeleton } from "../../kit/skeleton.tsx";
import type { KeyKind } from "../../session/session.ts";
import { useAnyApi, useApi, useIsHeld } from "../../session/session-context.tsx";

/** How things stand: credit, providers, keys. */
export function StateCards() {
  return (
    <div className="welcome-state">
      <CreditCard />
      <ProviderCount />
      <KeyCount />
    </div>
  );
}

function CreditCard() {
  const api = useApi("management");
  const enabled = useIsHeld("management");
  const credits = useQuery({
    queryKey: ["credits"],
    queryFn: async () => (await answerOf(api.GET("/credits"))).data,
    enabled,
  });
  return (
    <Figure
      title="Credit"
      failure={credits.error}
      missing={enabled ? undefined : "A management key shows it."}
    >
      {credits.data && {
        figure: (
          <MoneyText
            usd={
              nanoUsdOf(credits.data.total_credits) -
              nanoUsdOf(credits.data.total_usage) -
              nanoUsdOf(credits.data.held)
            }
          />
        ),
        note: (
          <>
            free · <MoneyText usd={credits.data.total_usage} /> spent · <MoneyText usd={credits.data.held} />{" "}
            held
          </>
        ),
      }}
    </Figure>
  );
}

function ProviderCount() {
  const any = useAnyApi();
  const providers = useProviders(any);
  const on = providers.data?.filter(({ is_on }) => is_on);
  return (
    <Figure title="Providers" failure={providers.error}>
      {on && {
        figure: `${on.length} on`,
        note: `of ${providers.data?.length} · ${on.reduce((sum, { models }) => sum + models, 0)} models`,
      }}
    </Figure>
  );
}

/** Every provider of the gateway, on or off. */
export function useProviders(any: ReturnType<typeof useAnyApi>) {
  return useQuery({
    queryKey: ["providers", any?.kind],
    queryFn: async () => (any === undefined ? [] : (await answerOf(any.api.GET("/providers"))).data),
    enabled: any !== undefined,
  });
}

function KeyCount() {
  const api = useApi("management");
  const enabled = useIsHeld("management");
  const keys = useQuery({
    queryKey: ["keys", "first-page"],
    queryFn: async () => (await answerOf(api.GET("/keys"))).data,
    enabled,
  });
  const count = (wanted: KeyKind) => keys.data?.filter(({ kind }) => kind === wanted).length ?? 0;
  return (
    <Figure title="Keys" failure={keys.error} missing={enabled ? undefined : "A management key shows them."}>
      {keys.data && {
        figure: keys.data.length,
        note: `${count("inference")} inference · ${count("management")} management`,
      }}
    </Figure>
  );
}

interface FigureProps {
  readonly title: string;
  readonly failure?: Error | null;
  /** Why there is no figure. */
  readonly missing?: string | undefined;
  readonly children: { readonly figure: ReactNode; readonly note: ReactNode } | undefined;
}

function Figure({ title, failure = null, missing, children }: FigureProps) {
  return (
    <section className="card">
      <h2>{title}</h2>
      {missing !== undefined && <p className="soft">{missing}</p>}
      {failure !== null && <FailureNotice failure={failure} />}
      {missing === undefined && failure === null && children === undefined && <Skeleton lines={2} />}
      {children !== undefined && (
        <>
          <p className="figure number">{children.figure}</p>
          <p className="soft small">{children.note}</p>
        </>
      )}
    </section>
  );
}
