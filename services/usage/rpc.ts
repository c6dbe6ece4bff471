import type { ServiceImpl } from "@connectrpc/connect";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { ListActivityRequest } from "../../gen/media/usage/v1/usage_pb.ts";
import type { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { isKeyHash } from "../../lib/identity/api-key.ts";
import { principalOf } from "../../lib/identity/caller.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import { type ActivityFilter, activityWindow, listActivity } from "./activity.ts";
import { fromRowEvent, toProtoActivityItem } from "./convert.ts";
import { dayOfMs, isDay } from "./day.ts";
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

/** Reads what activity is asked for. Throws `invalid_body`. */
function fromProtoListActivityRequest(
  { date, apiKeyHash, memberId }: ListActivityRequest,
  { accountId, organization }: Principal,
  nowMs: number,
): ActivityFilter {
  const issues: Issue[] = [];
  const window = activityWindow(dayOfMs(nowMs));
  if (date !== "" && !isDay(date)) {
    issues.push({ path: "date", message: "must be a date written YYYY-MM-DD" });
  } else if (date !== "" && (date < window.firstDay || date > window.lastDay)) {
    issues.push({ path: "date", message: `must lie between ${window.firstDay} and ${window.lastDay}` });
  }
  if (apiKeyHash !== "" && !isKeyHash(apiKeyHash.toLowerCase())) {
    issues.push({ path: "api_key_hash", message: "must be 64 hex characters" });
  }
  if (memberId !== "" && !organization) {
    issues.push({ path: "member_id", message: "is only for organization accounts" });
  } else if (memberId !== "" && !isUuid(memberId)) {
    issues.push({ path: "member_id", message: "must be a UUID" });
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
  return {
    accountId,
    ...(date === "" ? window : { firstDay: date, lastDay: date }),
    keyHash: apiKeyHash === "" ? undefined : apiKeyHash.toLowerCase(),
    memberId: memberId === "" ? undefined : memberId,
  };
}
