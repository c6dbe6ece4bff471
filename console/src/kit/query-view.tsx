import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { FailureNotice } from "./failure-notice.tsx";
import { Skeleton } from "./skeleton.tsx";

interface QueryViewProps<T> {
  readonly query: UseQueryResult<T>;
  /** Lines of the skeleton while it loads. */
  readonly lines?: number;
  readonly children: (data: T) => ReactNode;
}

/** What a query came to: loading, an error with another try, or its data, which stays while a later call fails. */
export function QueryView<T>({ query, lines = 3, children }: QueryViewProps<T>) {
  const { data, error, isPending, refetch } = query;
  if (isPending) return <Skeleton lines={lines} />;
  return (
    <>
      {error !== null && <FailureNotice failure={error} onRetry={() => void refetch()} />}
      {data !== undefined && children(data)}
    </>
  );
}
