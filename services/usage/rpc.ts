import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { listActivity } from "./activity.ts";
import { firstByteBoundsMs } from "./amounts.ts";
import { fromRowEvent, toProtoActivityItem, toProtoSeriesPoint } from "./convert.ts";
import { listGenerations } from "./generations/list-generations.ts";
import {
  fromProtoListActivityRequest,
  fromProtoListActivitySeriesRequest,
  fromProtoListGenerationsRequest,
  toPageToken,
} from "./requests.ts";
import { listSeries } from "./series.ts";
import type { UsageDatabase } from "./store.ts";

/** The handlers of UsageService; each answers for the account of the calling key alone. */
export function createUsageHandlers(
  database: UsageDatabase,
  clock: Clock,
): Partial<ServiceImpl<typeof UsageService>> {
  return {
    async listActivity(request, context) {
      const filter = fromProtoListActivityRequest(request, principalOf(context), clock.nowMs());
      const entries = await listActivity(database, filter);
      return { items: entries.map(toProtoActivityItem) };
    },
    async listActivitySeries(request, context) {
      const filter = fromProtoListActivitySeriesRequest(request, principalOf(context), clock.nowMs());
      const entries = await listSeries(database, filter);
      return { points: entries.map(toProtoSeriesPoint), firstByteBoundsMs: firstByteBoundsMs.map(BigInt) };
    },
    async listGenerations(request, context) {
      const filter = fromProtoListGenerationsRequest(request, principalOf(context));
      const { events, next } = await listGenerations(database, filter);
      return { events: events.map(fromRowEvent), nextPageToken: toPageToken(next) };
    },
    async getGeneration({ generationId }, context) {
      const { accountId } = principalOf(context);
      const row = generationId.includes("\0")
        ? undefined
        : await database
            .selectFrom("record")
            .select("event")
            .where("event_id", "=", generationId)
            .where("account_id", "=", accountId)
            .executeTakeFirst();
      if (row === undefined) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such generation");
      return { event: fromRowEvent(row) };
    },
  };
}
