import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { ProviderError } from "../contract.ts";
import type { AttemptRecord } from "./attempt.ts";

/** A failed attempt in the log: our own words about it, never the upstream's. Says nothing of others. */
export function logAttempt(log: Log, generationId: string, record: AttemptRecord): void {
  if (record.reason === undefined || record.outcome === Outcome.CANCELLED) return;
  const { endpoint, error } = record;
  const fields = {
    generation_id: generationId,
    provider: endpoint.providerSlug,
    endpoint_id: endpoint.id,
    operator_key: endpoint.operatorKey === undefined ? undefined : endpoint.operatorKey + 1,
    provider_status: record.providerStatus,
    reason: wordOfReason(record.reason),
    ms: Math.round(record.durationMs),
  };
  if (error === undefined) log.warn(fields, "attempt failed");
  else if (error instanceof ProviderError) log.warn({ ...fields, detail: error.message }, "attempt failed");
  else log.error({ ...fields, err: error }, "attempt failed");
}
