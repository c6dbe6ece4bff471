import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import type { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type Api,
  type Attempt,
  type BilledUnits,
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
  type ProviderReport,
  type TokenCounts,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import { principalOf } from "../identity/caller.ts";
import { requestIdKey } from "../rpc/request-context.ts";
import { wordOfReason } from "../runtime/error-code.ts";
import { type Span, spanKey } from "../runtime/span.ts";
import type { AttributionFields } from "./request-limits.ts";

/** Whom a generation is charged to and what it is kept under. */
export interface Attribution {
  readonly principal: Principal;
  readonly requestId: string;
  /** The caller's own end user; empty when not given. */
  readonly user: string;
  readonly sessionId: string;
  /** The caller's own, for its destinations; has nothing to do with `span`. */
  readonly trace: JsonObject | undefined;
  /** Of the call that asks for it; what is done for it is part of that. Stands in no event. */
  readonly span?: Span;
}

/** Whom a call is charged to and what it is kept under. Throws `key_missing` when it speaks for nobody. */
export function attributionOf(
  { user, sessionId, trace }: AttributionFields,
  context: Pick<HandlerContext, "values">,
): Attribution {
  return {
    principal: principalOf(context),
    requestId: context.values.get(requestIdKey),
    user,
    sessionId,
    trace,
    span: context.values.get(spanKey),
  };
}

/** An endpoint as events name it. */
export interface EventEndpoint {
  readonly id: string;
  readonly permaslug: string;
  readonly providerSlug: string;
  readonly providerName: string;
}

/** What is known of a generation when it begins. */
export interface GenerationBeginning {
  readonly generationId: string;
  readonly api: Api;
  /** As the client named it. */
  readonly model: string;
  readonly attribution: Attribution;
  /** Wall clock, Unix milliseconds. */
  readonly startedAtMs: number;
}

/** What a generation came to. */
export interface GenerationEnd {
  /** Anything but LOST. */
  readonly outcome: Outcome;
  /** Why it did not succeed; undefined otherwise. */
  readonly reason: ErrorReason | undefined;
  /** That served, or was tried last. */
  readonly endpoint: EventEndpoint;
  /** In order, at least one. */
  readonly attempts: readonly Attempt[];
  readonly firstOutputAtMs: number | undefined;
  readonly endedAtMs: number;
  readonly tokens: Omit<TokenCounts, "$typeName" | "$unknown">;
  /** What the provider says of its own billing. */
  readonly providerReport?: Omit<ProviderReport, "$typeName" | "$unknown"> | undefined;
  readonly units: Partial<Omit<BilledUnits, "$typeName" | "$unknown">>;
  readonly byok: boolean;
  readonly costNanoUsd: bigint;
  readonly listPriceNanoUsd: bigint;
  /** Whether the caller left before the end. */
  readonly cancelled: boolean;
  /** Whether output was handed out while it was being made. */
  readonly streamed: boolean;
}

const maxAttempts = 16;

/** What a generation that is lost would leave: revision 0, no cost. `endpoint` is the first that is to be tried. */
export function draftEvent(beginning: GenerationBeginning, endpoint: EventEndpoint): GenerationEvent {
  return create(GenerationEventSchema, {
    ...beginningOf(beginning),
    ...endpointOf(endpoint),
    revision: 0,
    outcome: Outcome.LOST,
  });
}

/** The event of a generation that has ended: revision 1. */
export function endEvent(beginning: GenerationBeginning, end: GenerationEnd): GenerationEvent {
  return create(GenerationEventSchema, {
    ...beginningOf(beginning),
    ...endpointOf(end.endpoint),
    revision: 1,
    byok: end.byok,
    tokens: end.tokens,
    ...(end.providerReport === undefined ? {} : { providerReport: end.providerReport }),
    units: end.units,
    costNanoUsd: end.costNanoUsd,
    listPriceNanoUsd: end.listPriceNanoUsd,
    ...(end.firstOutputAtMs === undefined ? {} : { firstByteAt: timestampFromMs(end.firstOutputAtMs) }),
    // Clocks step back; an end before the beginning would make no sense to anybody.
    endedAt: timestampFromMs(Math.max(end.endedAtMs, beginning.startedAtMs)),
    cancelled: end.cancelled,
    streamed: end.streamed,
    outcome: end.outcome,
    reason: end.reason === undefined ? "" : wordOfReason(end.reason),
    attempts: end.attempts.slice(-maxAttempts),
  });
}

function beginningOf({ generationId, api, model, attribution, startedAtMs }: GenerationBeginning) {
  const { principal, requestId, user, sessionId, trace } = attribution;
  return {
    eventId: generationId,
    requestId,
    accountId: principal.accountId,
    memberId: principal.memberId,
    keyHash: principal.keyHash,
    keyName: principal.keyName,
    endUser: user,
    sessionId,
    ...(trace === undefined ? {} : { trace }),
    api,
    model,
    startedAt: timestampFromMs(Math.round(startedAtMs)),
  };
}

function endpointOf({ id, permaslug, providerSlug, providerName }: EventEndpoint) {
  return { endpointId: id, modelPermaslug: permaslug, providerSlug, providerName };
}
