import type { Client } from "@connectrpc/connect";
import type { Destination } from "../../gen/media/destination/v1/destination_pb.ts";
import type { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { type BodyLimits, readJsonBody } from "../body/request-body.ts";
import { deletedAnswer } from "../docs/deleted-answer.ts";
import { apiPath } from "../docs/openapi.ts";
import type { Exchange } from "../http/exchange.ts";
import { namedId } from "../http/named-id.ts";
import { QueryReader } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { toDeliveryBody, toDestinationBody, toTestBody } from "./answer.ts";
import { toCreateDestinationRequest, toUpdateDestinationRequest } from "./body.ts";
import {
  createDestinationDocument,
  deleteDestinationDocument,
  getDestinationDocument,
  listDeliveriesDocument,
  listDestinationsDocument,
  resumeDestinationDocument,
  testDestinationDocument,
  updateDestinationDocument,
} from "./document.ts";

interface DestinationsDependencies {
  destinations: Client<typeof DestinationService>;
  bodyLimits: BodyLimits;
}

const collectionPath = `${apiPath}/observability/destinations`;
const destinationPath = `${collectionPath}/:id`;
/** Longer than the service waits for a receiver, so that one that hangs is reported as such. */
const testTimeoutMs = 20_000;

/** All of /api/v1/observability/destinations. */
export function destinationRoutes({ destinations, bodyLimits }: DestinationsDependencies): readonly Route[] {
  return [
    serviceRoute({
      method: "GET",
      path: collectionPath,
      document: listDestinationsDocument,
      request: readPage,
      call: destinations.listDestinations,
      answer: (page) => ({
        data: page.destinations.map(toDestinationBody),
        total_count: Number(page.totalCount),
      }),
    }),
    serviceRoute({
      method: "POST",
      path: collectionPath,
      document: createDestinationDocument,
      request: async (exchange) => toCreateDestinationRequest(await readJsonBody(exchange, bodyLimits)),
      call: destinations.createDestination,
      ...destinationAnswer,
    }),
    ...itemRoutes({ destinations, bodyLimits }),
    ...deliveryRoutes(destinations),
  ];
}

function itemRoutes({ destinations, bodyLimits }: DestinationsDependencies): readonly Route[] {
  return [
    serviceRoute({
      method: "GET",
      path: destinationPath,
      document: getDestinationDocument,
      request: namedDestination,
      call: destinations.getDestination,
      ...destinationAnswer,
    }),
    serviceRoute({
      method: "PATCH",
      path: destinationPath,
      document: updateDestinationDocument,
      request: async (exchange) => ({
        ...toUpdateDestinationRequest(await readJsonBody(exchange, bodyLimits)),
        ...namedDestination(exchange),
      }),
      call: destinations.updateDestination,
      ...destinationAnswer,
    }),
    serviceRoute({
      method: "DELETE",
      path: destinationPath,
      operation: "deleteDestination",
      document: deleteDestinationDocument,
      request: namedDestination,
      call: destinations.deleteDestination,
      answer: () => deletedAnswer,
    }),
  ];
}

/** What is delivered, and whether it would be. */
function deliveryRoutes(destinations: DestinationsDependencies["destinations"]): readonly Route[] {
  return [
    serviceRoute({
      method: "POST",
      path: `${destinationPath}/test`,
      document: testDestinationDocument,
      request: namedDestination,
      call: (request, options) =>
        destinations.testDestination(request, { ...options, timeoutMs: testTimeoutMs }),
      answer: toTestBody,
    }),
    serviceRoute({
      method: "GET",
      path: `${destinationPath}/deliveries`,
      document: listDeliveriesDocument,
      request: (exchange) => ({ ...readPage(exchange), destinationId: namedDestination(exchange).id }),
      call: destinations.listDeliveries,
      answer: ({ deliveries, totalCount }) => ({
        data: deliveries.map(toDeliveryBody),
        total_count: Number(totalCount),
      }),
    }),
    serviceRoute({
      method: "POST",
      path: `${destinationPath}/resume`,
      document: resumeDestinationDocument,
      request: namedDestination,
      call: destinations.resumeDestination,
      ...destinationAnswer,
    }),
  ];
}

const destinationAnswer = {
  answer: ({ destination }: { destination?: Destination | undefined }) => ({
    data: toDestinationBody(destination),
  }),
  wireNames: { "api_key_hashes.values": "api_key_hashes" },
};

const namedDestination = (exchange: Exchange) => namedId(exchange, "destination");

function readPage(exchange: Exchange) {
  const query = new QueryReader(exchange);
  const page = query.page();
  query.throwIfAny();
  return page;
}
