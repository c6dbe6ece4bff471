import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import {
  DeliverySchema,
  DeliveryStatus,
  type Destination,
  DestinationSchema,
} from "../../gen/media/destination/v1/destination_pb.ts";
import type { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { destinationPage } from "../../lib/limits/destination-limits.ts";
import { type BodyLimits, readJsonBody } from "../body/request-body.ts";
import { apiPath } from "../docs/openapi.ts";
import {
  deletedAnswer,
  deletedBody,
  documentsOf,
  idParameter,
  jsonAnswer,
  pageParameters,
} from "../docs/route-document.ts";
import type { Exchange } from "../http/exchange.ts";
import { readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { namedId, serviceRoute } from "../http/service-route.ts";
import {
  deliveryListSchema,
  destinationAnswerSchema,
  destinationListSchema,
  destinationTestSchema,
  toDeliveryBody,
  toDestinationBody,
  toTestBody,
} from "./answer.ts";
import {
  createDestinationBodySchema,
  toCreateDestinationRequest,
  toUpdateDestinationRequest,
  updateDestinationBodySchema,
} from "./body.ts";

const createdAt = timestampFromMs(Date.UTC(2030, 0, 31, 12));
const url = "https://receiver.example.com/events";

const destination = toDestinationBody(
  create(DestinationSchema, {
    id: "0c9a4b7e-5f1d-4d0c-9a57-2f1c3a8e6b11",
    accountId: "6f1f1c0e-52ad-4b52-9d57-6c1de19f7a7b",
    name: "Our receiver",
    type: "webhook",
    enabled: true,
    samplingRate: 1,
    config: { url, method: "POST", headers: { "x-api-key": "…" } },
    createdAt,
    updatedAt: createdAt,
  }),
);

const delivery = toDeliveryBody(
  create(DeliverySchema, {
    id: "5d2f6a0b-8c3e-4f7a-b1d9-0e4c7f2a9b33",
    status: DeliveryStatus.DELIVERED,
    attempt: 1,
    eventCount: 12,
    responseStatus: 200,
    latencyMs: 84n,
    attemptedAt: createdAt,
  }),
);

const page = pageParameters(destinationPage);

const answer = (description: string, status?: 201) =>
  jsonAnswer(description, "Destination", destinationAnswerSchema, { data: destination }, status);

const documents = documentsOf("Destinations", {
  listDestinations: {
    summary: "Where usage events are delivered",
    description: "Oldest first, 50 a page. Management keys only.",
    parameters: page,
    answer: jsonAnswer("The destinations.", "DestinationList", destinationListSchema, {
      data: [destination],
      total_count: 1,
    }),
  },
  createDestination: {
    summary: "Make a destination",
    description:
      "From now on events of the account that match are delivered to it, at least once each. An address that is private is refused; nobody needs to listen there yet. 409 when there are five of its type. Management keys only.",
    body: {
      name: "DestinationRequest",
      schema: createDestinationBodySchema,
      examples: () => ({
        least: { type: "webhook", name: "Our receiver", config: { url } },
        selective: {
          type: "webhook",
          name: "Costly",
          config: { url, headers: { "x-api-key": "your-own-secret" } },
          sampling_rate: 0.1,
          filter_rules: {
            groups: [{ logic: "and", rules: [{ field: "total_cost", operator: "gte", value: 0.01 }] }],
          },
          broadcast_generation_cost: true,
        },
      }),
    },
    answer: answer("It is made.", 201),
    errors: [409],
  },
  getDestination: {
    summary: "One destination",
    description: "Its secrets are masked, and so is what may be a token in an address. Management keys only.",
    parameters: [idParameter],
    answer: answer("The destination."),
  },
  updateDestination: {
    summary: "Change a destination",
    description:
      "What is absent stays as it is, single settings of `config` too; null takes away key hashes, filter rules or a setting. Secrets that come back masked stay. New settings end a pause after sustained failure. Management keys only.",
    parameters: [idParameter],
    body: {
      name: "DestinationChange",
      schema: updateDestinationBodySchema,
      examples: () => ({
        disable: { enabled: false },
        everything: { filter_rules: null, api_key_hashes: null, sampling_rate: 1 },
      }),
    },
    answer: answer("The destination as it is now."),
  },
  deleteDestination: {
    summary: "Delete a destination",
    description:
      "Nothing more is delivered, and its id is never found again. Management keys only: to others it does not exist.",
    parameters: [idParameter],
    answer: deletedAnswer("It is gone."),
  },
  testDestination: {
    summary: "Test a destination",
    description: "Sends a marked payload without events and tells what came of it. Management keys only.",
    parameters: [idParameter],
    answer: jsonAnswer("What came of it.", "DestinationTest", destinationTestSchema, {
      data: { ok: false, status: 401, cause: "the receiver does not accept the credentials" },
    }),
  },
  listDeliveries: {
    summary: "What was delivered",
    description:
      "Attempts, newest first, 50 a page; the newest 1,000 are kept, for 7 days. Management keys only.",
    parameters: [idParameter, ...page],
    answer: jsonAnswer("The attempts.", "DeliveryList", deliveryListSchema, {
      data: [delivery],
      total_count: 1,
    }),
  },
  resumeDestination: {
    summary: "Deliver again",
    description:
      "Ends a pause after sustained failure, or the wait before the next attempt. What waited, at most a day's events, is delivered. Management keys only.",
    parameters: [idParameter],
    answer: answer("The destination as it is now."),
  },
});

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
      document: documents.listDestinations,
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
      document: documents.createDestination,
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
      document: documents.getDestination,
      request: namedDestination,
      call: destinations.getDestination,
      ...destinationAnswer,
    }),
    serviceRoute({
      method: "PATCH",
      path: destinationPath,
      document: documents.updateDestination,
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
      document: documents.deleteDestination,
      request: namedDestination,
      call: destinations.deleteDestination,
      answer: () => deletedBody,
    }),
  ];
}

/** What is delivered, and whether it would be. */
function deliveryRoutes(destinations: DestinationsDependencies["destinations"]): readonly Route[] {
  return [
    serviceRoute({
      method: "POST",
      path: `${destinationPath}/test`,
      document: documents.testDestination,
      request: namedDestination,
      call: (request, options) =>
        destinations.testDestination(request, { ...options, timeoutMs: testTimeoutMs }),
      answer: toTestBody,
    }),
    serviceRoute({
      method: "GET",
      path: `${destinationPath}/deliveries`,
      document: documents.listDeliveries,
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
      document: documents.resumeDestination,
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

const readPage = (exchange: Exchange) => readQuery(exchange, (query) => query.page());
