import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useState } from "react";
import { ApiFailure } from "./api/api-failure.ts";
import { Layout } from "./layout/layout.tsx";
import { PageView } from "./layout/page-view.tsx";
import { LinkExchange } from "./session/link-exchange.tsx";
import type { Session } from "./session/session.ts";
import { SessionProvider } from "./session/session-context.tsx";

const mostRetries = 2;

/** Whether another try could end better: what was refused stays refused. */
function shouldRetry(count: number, failure: Error): boolean {
  const status = failure instanceof ApiFailure ? failure.status : undefined;
  return count < mostRetries && status !== undefined && status >= 500;
}

/** What no answer of the gateway explains is a fault of this page: it goes where faults go. */
function reportFault(thrown: Error): void {
  if (!(thrown instanceof ApiFailure)) reportError(thrown);
}

/** The whole console. `linkCode` is of a login link that it was opened by. */
export function App({ session, linkCode }: { session: Session; linkCode: string | undefined }) {
  const [queries] = useState(
    () =>
      new QueryClient({
        queryCache: new QueryCache({ onError: reportFault }),
        mutationCache: new MutationCache({ onError: reportFault }),
        defaultOptions: { queries: { retry: shouldRetry, staleTime: 10_000 } },
      }),
  );
  return (
    <QueryClientProvider client={queries}>
      <SessionProvider session={session}>
        <Layout>
          {linkCode !== undefined && <LinkExchange code={linkCode} />}
          <PageView />
        </Layout>
      </SessionProvider>
    </QueryClientProvider>
  );
}
