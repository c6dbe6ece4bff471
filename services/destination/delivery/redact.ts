import { clone } from "@bufbuild/protobuf";
import {
  type GenerationEvent,
  GenerationEventSchema,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import type { Batch } from "../types/contract.ts";

/** What of a destination decides about what it is told. */
export interface Disclosure {
  readonly privacy_mode: boolean;
  readonly tells_cost: boolean;
  readonly tells_identity: boolean;
  readonly tells_request_context: boolean;
}

/** What may be told, as a set of bits. */
export type TellsMask = number;

const bits = { cost: 1, identity: 2, requestContext: 4, endUser: 8 } as const;

/**
 * What a destination is told. Privacy mode takes away the end user and the request's context, whatever else is told.
 */
export function tellsMaskOf(disclosure: Disclosure): TellsMask {
  const { privacy_mode, tells_cost, tells_identity, tells_request_context } = disclosure;
  return (
    (tells_cost ? bits.cost : 0) |
    (tells_identity ? bits.identity : 0) |
    (tells_identity && !privacy_mode ? bits.endUser : 0) |
    (tells_request_context && !privacy_mode ? bits.requestContext : 0)
  );
}

/** The same as types of destinations read it. */
export function toTells(mask: TellsMask): Batch["tells"] {
  return {
    cost: (mask & bits.cost) !== 0,
    identity: (mask & bits.identity) !== 0,
    requestContext: (mask & bits.requestContext) !== 0,
  };
}

/** An event without what may not be told, which stands at its default then. The event itself stays as it is. */
export function redact(event: GenerationEvent, mask: TellsMask): GenerationEvent {
  const told = clone(GenerationEventSchema, event);
  if ((mask & bits.cost) === 0) {
    told.costNanoUsd = 0n;
    told.listPriceNanoUsd = 0n;
  }
  if ((mask & bits.identity) === 0) {
    told.keyName = "";
    told.memberId = "";
  }
  if ((mask & bits.endUser) === 0) told.endUser = "";
  if ((mask & bits.requestContext) === 0) {
    told.sessionId = "";
    delete told.trace;
  }
  return told;
}
