import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import {
  type Delivery,
  DeliverySchema,
  DeliveryStatus,
  type Destination,
  DestinationSchema,
  FilterLogic,
  PauseReason,
} from "../../../gen/media/destination/v1/destination_pb.ts";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { serverInterceptor } from "../../../lib/rpc/interceptors.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { type MessageChanges, recordCreatedMs } from "../../fakes/fake-account.ts";

/** Handlers that play the destination service. */
export type DestinationHandlers = Partial<ServiceImpl<typeof DestinationService>>;

/** Registers the destination service with the given handlers. */
export function destinationRoutes(handlers: DestinationHandlers = {}) {
  return (router: ConnectRouter) =>
    router.service(DestinationService, handlers, { interceptors: [serverInterceptor(silentLog)] });
}

/** A destination with everything set, as the destination service answers it. */
export function destinationRecord(changes: MessageChanges<Destination> = {}): Destination {
  const destination = create(DestinationSchema, {
    id: "0c9a4b7e-5f1d-4d0c-9a57-2f1c3a8e6b11",
    accountId: "account-1",
    name: "Ours",
    type: "webhook",
    enabled: true,
    privacyMode: true,
    samplingRate: 0.25,
    apiKeyHashes: { values: ["ab".repeat(32)] },
    filterRules: {
      enabled: true,
      groups: [
        {
          logic: FilterLogic.OR,
          rules: [
            { field: "model", operator: "equals", value: { kind: { case: "stringValue", value: "a" } } },
            { field: "total_cost", operator: "gt", value: { kind: { case: "numberValue", value: 0.5 } } },
            { field: "user_id", operator: "exists" },
          ],
        },
      ],
    },
    broadcastGenerationCost: true,
    broadcastGenerationIdentity: true,
    broadcastGenerationRequestContext: true,
    config: { url: "https://receiver.test/", headers: { "x-key": "…" } },
    createdAt: timestampFromMs(recordCreatedMs),
    updatedAt: timestampFromMs(recordCreatedMs + 1),
    pauseReason: PauseReason.SUSTAINED_FAILURE,
    lastFailure: "the name is not known",
  });
  return Object.assign(destination, changes);
}

/** An attempt that failed, as the destination service answers it. */
export function deliveryRecord(changes: MessageChanges<Delivery> = {}): Delivery {
  const delivery = create(DeliverySchema, {
    id: "5d2f6a0b-8c3e-4f7a-b1d9-0e4c7f2a9b33",
    status: DeliveryStatus.RETRYING,
    attempt: 3,
    eventCount: 7,
    responseStatus: 503,
    latencyMs: 42n,
    cause: "the receiver is not available now",
    attemptedAt: timestampFromMs(recordCreatedMs),
  });
  return Object.assign(delivery, changes);
}
