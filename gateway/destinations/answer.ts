import Type, { type Static, type TSchema } from "typebox";
import {
  type Delivery,
  DeliveryStatus,
  type Destination,
  FilterLogic,
  type FilterRules,
  PauseReason,
  type TestDestinationResponse,
} from "../../gen/media/destination/v1/destination_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { nullableEnum, nullableInteger, nullableString, stringEnum } from "../schema/field-schemas.ts";
import { formatInstant } from "../schema/utc-instant.ts";

/** The words of how rules combine. */
export const filterLogics = { and: FilterLogic.AND, or: FilterLogic.OR } as const;

const deliveryStatuses = {
  delivered: DeliveryStatus.DELIVERED,
  retrying: DeliveryStatus.RETRYING,
  dead: DeliveryStatus.DEAD,
} as const;

function pauseReasonOf(reason: PauseReason): "sustained_failure" | "operator" | null {
  if (reason === PauseReason.UNSPECIFIED) return null;
  return reason === PauseReason.OPERATOR ? "operator" : "sustained_failure";
}

const orNull = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

const filterRulesSchema = Type.Object({
  enabled: Type.Boolean(),
  groups: Type.Array(
    Type.Object({
      logic: stringEnum(["and", "or"]),
      rules: Type.Array(
        Type.Object({
          field: Type.String(),
          operator: Type.String(),
          value: Type.Optional(Type.Union([Type.String(), Type.Number()])),
        }),
      ),
    }),
  ),
});

const destinationSchema = Type.Object({
  id: Type.String({ format: "uuid" }),
  workspace_id: Type.String({ description: "The account." }),
  name: nullableString(),
  type: Type.String(),
  enabled: Type.Boolean({ description: "Whether anything is delivered." }),
  privacy_mode: Type.Boolean({ description: "Whether end user, session id and trace are left out." }),
  sampling_rate: Type.Number({ minimum: 0, maximum: 1, description: "The share of sessions delivered." }),
  api_key_hashes: orNull(Type.Array(Type.String(), { description: "Only events of these keys." })),
  filter_rules: orNull(filterRulesSchema),
  broadcast_generation_cost: Type.Boolean(),
  broadcast_generation_cost_allocation: Type.Boolean({
    description: "Cost is not told by kind of token: always false.",
  }),
  broadcast_generation_identity: Type.Boolean(),
  broadcast_generation_request_context: Type.Boolean(),
  regions: Type.Array(stringEnum(["global"])),
  config: Type.Object({}, { additionalProperties: Type.Unknown(), description: "Its secrets are masked." }),
  created_at: Type.String({ format: "date-time" }),
  updated_at: Type.String({ format: "date-time" }),
  pause_reason: nullableEnum(["sustained_failure", "operator"], {
    description: "Why nothing is delivered although it is enabled; null: it is.",
  }),
  last_failure: nullableString({ description: "About the last delivery, when it failed." }),
});

/** The answer with one destination. */
export const destinationAnswerSchema = Type.Object({ data: destinationSchema });

/** The answer of GET /observability/destinations. */
export const destinationListSchema = Type.Object({
  data: Type.Array(destinationSchema, { description: "Oldest first." }),
  total_count: Type.Integer({ minimum: 0, description: "How many there are on all pages." }),
});

/** The answer of POST /observability/destinations/{id}/test. */
export const destinationTestSchema = Type.Object({
  data: Type.Object({
    ok: Type.Boolean({ description: "Whether the receiver took it." }),
    status: nullableInteger({ description: "The receiver's HTTP status; null when it gave none." }),
    cause: nullableString({ description: "Why not." }),
  }),
});

const deliverySchema = Type.Object({
  id: Type.String({ format: "uuid", description: "Stable for a batch over its attempts." }),
  status: stringEnum(Object.keys(deliveryStatuses) as (keyof typeof deliveryStatuses)[]),
  attempt: Type.Integer({ minimum: 0, description: "Which attempt it was; of a dead one, how many." }),
  event_count: Type.Integer({ minimum: 0 }),
  response_status: nullableInteger({ description: "The receiver's HTTP status; null when it gave none." }),
  latency_ms: Type.Integer({ minimum: 0 }),
  cause: nullableString({ description: "Why it failed." }),
  attempted_at: Type.String({ format: "date-time" }),
});

/** The answer of GET /observability/destinations/{id}/deliveries. */
export const deliveryListSchema = Type.Object({
  data: Type.Array(deliverySchema, { description: "Newest first." }),
  total_count: Type.Integer({ minimum: 0, description: "How many are kept." }),
});

/** A destination as answers show it. Throws `internal` when a service answered without one. */
export function toDestinationBody(destination: Destination | undefined): Static<typeof destinationSchema> {
  if (destination === undefined) {
    throw new DomainError(ErrorReason.INTERNAL, "an answer without its destination");
  }
  const { apiKeyHashes, filterRules, pauseReason } = destination;
  return {
    id: destination.id,
    workspace_id: destination.accountId,
    name: textOrNull(destination.name),
    type: destination.type,
    enabled: destination.enabled,
    privacy_mode: destination.privacyMode,
    sampling_rate: destination.samplingRate,
    api_key_hashes: apiKeyHashes?.values ?? null,
    filter_rules: filterRules === undefined ? null : toFilterRulesBody(filterRules),
    broadcast_generation_cost: destination.broadcastGenerationCost,
    broadcast_generation_cost_allocation: false,
    broadcast_generation_identity: destination.broadcastGenerationIdentity,
    broadcast_generation_request_context: destination.broadcastGenerationRequestContext,
    regions: ["global"],
    config: destination.config ?? {},
    created_at: formatInstant(destination.createdAt),
    updated_at: formatInstant(destination.updatedAt),
    pause_reason: pauseReasonOf(pauseReason),
    last_failure: textOrNull(destination.lastFailure),
  };
}

function toFilterRulesBody({ enabled = true, groups }: FilterRules): Static<typeof filterRulesSchema> {
  return {
    enabled,
    groups: groups.map(({ logic, rules }) => ({
      logic: logic === FilterLogic.OR ? "or" : "and",
      rules: rules.map(({ field, operator, value }) => {
        const kind = value?.kind;
        const isValue = kind?.case === "stringValue" || kind?.case === "numberValue";
        return { field, operator, ...(isValue ? { value: kind.value } : {}) };
      }),
    })),
  };
}

/** What came of a test, as answers show it. */
export function toTestBody(response: TestDestinationResponse): Static<typeof destinationTestSchema> {
  const { ok, responseStatus, cause } = response;
  return { data: { ok, status: statusOrNull(responseStatus), cause: textOrNull(cause) } };
}

/** An attempt as answers show it. */
export function toDeliveryBody(delivery: Delivery): Static<typeof deliverySchema> {
  const words = Object.keys(deliveryStatuses) as (keyof typeof deliveryStatuses)[];
  return {
    id: delivery.id,
    status: words.find((word) => deliveryStatuses[word] === delivery.status) ?? "retrying",
    attempt: delivery.attempt,
    event_count: delivery.eventCount,
    response_status: statusOrNull(delivery.responseStatus),
    latency_ms: Number(delivery.latencyMs),
    cause: textOrNull(delivery.cause),
    attempted_at: formatInstant(delivery.attemptedAt),
  };
}

function textOrNull(text: string): string | null {
  return text === "" ? null : text;
}

function statusOrNull(status: number): number | null {
  return status === 0 ? null : status;
}
