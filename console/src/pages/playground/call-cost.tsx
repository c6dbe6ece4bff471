import { useQuery } from "@tanstack/react-query";
import { answerOf } from "../../api/api.ts";
import { ApiFailure } from "../../api/api-failure.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import { useApi } from "../../session/session-context.tsx";

/** A record is there within two seconds of the end; of a call that was left, when the provider has ended it. */
const mostTries = 60;
const retryMs = 500;

/** What a call that ended was charged, as its record says. */
export function CallCost({ generationId }: { generationId: string }) {
  const api = useApi("inference");
  const record = useQuery({
    queryKey: ["generation", generationId],
    queryFn: () => answerOf(api.GET("/generation", { params: { query: { id: generationId } } })),
    staleTime: Number.POSITIVE_INFINITY,
    retry: (count, failure) =>
      count < mostTries && failure instanceof ApiFailure && failure.reason === "record_unknown",
    retryDelay: retryMs,
  });
  if (record.data !== undefined) return <MoneyText usd={record.data.data.total_cost} />;
  return <span className="soft">{record.error === null ? "being counted …" : "not known yet"}</span>;
}
