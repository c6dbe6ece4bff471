import { clone } from "@bufbuild/protobuf";
import {
  type GenerationEvent,
  GenerationEventSchema,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import type { Batch } from "../types/contract.ts";

/** What its owner has decided about what a destination is sent, as the columns are named. */
export interface DisclosureSettings {
  readonly privacy_mode: boolean;
  readonly tells_cost: boolean;
  readonly tells_identity: boolean;
  readonly tells_request_context: boolean;
}

/** The fields of an event that are disclosed, as a set of bits; stored with each event that waits. */
export type DisclosureMask = number;

const bits = { cost: 1, identity: 2, requestContext: 4, endUser: 8 } as const;

/** Privacy mode takes away the end user and the request's context, whatever else is disclosed. */
export function disclosureMaskOf(settings: DisclosureSettings): DisclosureMask {
  const { privacy_mode, tells_cost, tells_identity, tells_request_context } = settings;
  return (
    (tells_cost ? bits.cost : 0) |
    (tells_identity ? bits.identity : 0) |
    (tells_identity && !privacy_mode ? bits.endUser : 0) |
    (tells_request_context && !privacy_mode ? bits.requestContext : 0)
  );
}

/** The same as types of destinations read it. */
export function toDisclosed(mask: DisclosureMask): Batch["disclosed"] {
  return {
    cost: (mask & bits.cost) !== 0,
    identity: (mask & bits.identity) !== 0,
    requestContext: (mask & bits.requestContext) !== 0,
  };
}

/** A copy of an event in which what is not disclosed stands at its default. */
export function redact(event: GenerationEvent, mask: DisclosureMask): GenerationEvent {
  const redacted = clone(GenerationEventSchema, event);
  if ((mask & bits.cost) === 0) {
    redacted.costNanoUsd = 0n;
    redacted.listPriceNanoUsd = 0n;
  }
  if ((mask & bits.identity) === 0) {
    redacted.keyName = "";
    redacted.memberId = "";
  }
  if ((mask & bits.endUser) === 0) redacted.endUser = "";
  if ((mask & bits.requestContext) === 0) {
    redacted.sessionId = "";
    delete redacted.trace;
  }
  return redacted;
}
