import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Delivery,
  DeliverySchema,
  DeliveryStatus,
  type Destination,
  DestinationSchema,
  PauseReason,
} from "../../../gen/media/destination/v1/destination_pb.ts";
import type { DeliveryRow, DeliveryStatusName, ShownDestinationRow } from "../store.ts";
import { toProtoFilterRules } from "./filter-rules.ts";
import { maskConfig } from "./masked-config.ts";
import type { SettingsKeeper } from "./settings-keeper.ts";

const unreadable = "the settings can't be read any more; enter them anew";

/** A destination as it is shown: its secrets masked. */
export function toProtoDestination(row: ShownDestinationRow, keeper: SettingsKeeper): Destination {
  const config = keeper.open(row);
  return create(DestinationSchema, {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    type: row.type,
    enabled: row.enabled,
    privacyMode: row.privacy_mode,
    samplingRate: row.sampling_rate,
    ...(row.key_hashes === null ? {} : { apiKeyHashes: { values: row.key_hashes } }),
    ...(row.filter_rules === null ? {} : { filterRules: toProtoFilterRules(row.filter_rules) }),
    broadcastGenerationCost: row.tells_cost,
    broadcastGenerationIdentity: row.tells_identity,
    broadcastGenerationRequestContext: row.tells_request_context,
    config: config === undefined ? {} : masked(config, row, keeper),
    createdAt: timestampFromDate(row.created_at),
    updatedAt: timestampFromDate(row.updated_at),
    pauseReason: pauseReasonOf(row),
    lastFailure: config === undefined ? unreadable : row.last_failure,
  });
}

function pauseReasonOf({
  paused_at,
  operator_paused_at,
}: Pick<ShownDestinationRow, "paused_at" | "operator_paused_at">): PauseReason {
  if (paused_at === null) return PauseReason.UNSPECIFIED;
  const isOperators = paused_at.getTime() === operator_paused_at?.getTime();
  return isOperators ? PauseReason.OPERATOR : PauseReason.SUSTAINED_FAILURE;
}

/** Of a type that is not known here nothing is known to be no secret. */
function masked(
  config: JsonObject,
  { type }: Pick<ShownDestinationRow, "type">,
  keeper: SettingsKeeper,
): JsonObject {
  return maskConfig(config, keeper.type(type)?.secrets ?? Object.keys(config));
}

const deliveryStatuses: Readonly<Record<DeliveryStatusName, DeliveryStatus>> = {
  delivered: DeliveryStatus.DELIVERED,
  retrying: DeliveryStatus.RETRYING,
  dead: DeliveryStatus.DEAD,
};

/** An attempt as it is shown. */
export function toProtoDelivery(row: DeliveryRow): Delivery {
  return create(DeliverySchema, {
    id: row.batch_id,
    status: deliveryStatuses[row.status],
    attempt: row.attempt,
    eventCount: row.event_count,
    responseStatus: row.response_status,
    latencyMs: BigInt(row.latency_ms),
    cause: row.cause,
    attemptedAt: timestampFromDate(row.attempted_at),
  });
}
