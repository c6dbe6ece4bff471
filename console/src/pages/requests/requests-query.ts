import { type InfiniteData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { type Api, answerOf } from "../../api/api.ts";
import { useApi, useIsHeld } from "../../session/session-context.tsx";
import { type Filter, generationQuery } from "./filter.ts";
import { merged, newcomersOf } from "./merge-rows.ts";

type GenerationPage = Awaited<ReturnType<typeof generationPage>>;

/** A generation as the list has it. */
export type Generation = GenerationPage["data"][number];

const pageSize = 50;
const lookEveryMs = 2_000;

/** One page of what a filter lets through. */
export function generationPage(
  api: Api,
  filter: Filter,
  { limit, cursor }: { limit: number; cursor: string | undefined },
  now: Date,
) {
  const query = { ...generationQuery(filter, now), limit, ...(cursor !== undefined && { cursor }) };
  return answerOf(api.GET("/generations", { params: { query } }));
}

/**
 * The generations of a filter, page by page, and the newest ones as they come. Those wait in `fresh` until `show` is called:
 * nothing that is read moves by itself.
 */
export function useRequests(filter: Filter, now: Date) {
  const api = useApi("management");
  const isHeld = useIsHeld("management");
  const queries = useQueryClient();
  const queryKey = ["generations", filter, now.getTime()];
  const list = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => generationPage(api, filter, { limit: pageSize, cursor: pageParam }, now),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    // It is the newest look that goes on; pages that were read stay.
    staleTime: Number.POSITIVE_INFINITY,
  });
  const look = useQuery({
    queryKey: ["generations-newest", filter, now.getTime()],
    queryFn: () => generationPage(api, filter, { limit: pageSize, cursor: undefined }, now),
    enabled: isHeld && list.isSuccess,
    refetchInterval: lookEveryMs,
    staleTime: 0,
  });
  const rows = list.data?.pages.flatMap(({ data }) => data) ?? [];
  const fresh = newcomersOf(rows, (list.data && look.data?.data) ?? [], {
    limit: pageSize,
    hasOlder: list.hasNextPage,
  });
  const show = () => {
    if (fresh.hasGap) return void queries.resetQueries({ queryKey });
    queries.setQueryData<InfiniteData<GenerationPage, string | undefined>>(queryKey, (held) => {
      const [first, ...later] = held?.pages ?? [];
      if (held === undefined || first === undefined) return held;
      return { ...held, pages: [{ ...first, data: merged(first.data, fresh.rows) }, ...later] };
    });
  };
  return { list, look, rows, fresh, show };
}

/** Calls `show` for newcomers while nobody reads: the page's top is in sight, and neither pointer nor focus is in the list. */
export function useShowWhileIdle(count: number, show: () => void): void {
  useEffect(() => {
    if (count === 0) return;
    const isRead =
      document.querySelector(".requests-list:is(:hover, :focus-within), [role='dialog']") !== null;
    if (scrollY === 0 && !isRead) show();
  });
}
