import { useQuery } from "@tanstack/react-query";
import { answerOf } from "../../api/api.ts";
import type { useAnyApi } from "../../session/session-context.tsx";

/** The interface, called with whichever key the tab has. */
export type AnyApi = NonNullable<ReturnType<typeof useAnyApi>>["api"];

const refetchInterval = 10_000;
const mostAtOnce = 4;

/** Every provider that is on, and how it has lately fared. */
export function useProvidersHealth(api: AnyApi) {
  return useQuery({
    queryKey: ["providers-health"],
    refetchInterval,
    queryFn: async () => (await answerOf(api.GET("/providers"))).data.filter(({ is_on }) => is_on),
  });
}

/** Every endpoint of every model, and how it has lately fared. */
export function useAllEndpoints(api: AnyApi) {
  return useQuery({
    queryKey: ["all-endpoints"],
    refetchInterval,
    queryFn: async () => {
      const models = (await answerOf(api.GET("/models"))).data;
      const endpoints: Awaited<ReturnType<typeof endpointsOf>> = [];
      for (let from = 0; from < models.length; from += mostAtOnce) {
        const some = models.slice(from, from + mostAtOnce);
        endpoints.push(...(await Promise.all(some.map(({ id }) => endpointsOf(api, id)))).flat());
      }
      return endpoints;
    },
  });
}

async function endpointsOf(api: AnyApi, id: string) {
  const slash = id.indexOf("/");
  const path = { author: id.slice(0, slash), slug: id.slice(slash + 1) };
  const { data } = await answerOf(api.GET("/models/{author}/{slug}/endpoints", { params: { path } }));
  return data.endpoints;
}
