import { spansOf } from "../../../../test/upstreams/receivers/otlp-receiver.ts";
import type { ReceivedRequest } from "../../../../test/upstreams/stand-in/stand-in-server.ts";
import type { ReceivedDelivery } from "../type-stage.suite.ts";

/** What a request of a type that speaks OTLP says of itself. */
export function readOtlpDelivery(request: ReceivedRequest): ReceivedDelivery {
  return {
    deliveryId: request.headers["x-delivery-id"] as string,
    events: spansOf(request).map(({ attributes }) => ({
      eventId: attributes["media.generation.id"],
      revision: Number(attributes["media.generation.revision"]),
    })),
  };
}
