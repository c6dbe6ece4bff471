import type { CallOptions, Client } from "@connectrpc/connect";
import type { Destination } from "../../gen/media/destination/v1/destination_pb.ts";
import type { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import type { BodyLimits } from "../body/body-arrival.ts";
import { readJsonBody } from "../body/request-body.ts";
import { deletedAnswer } from "../docs/deleted-answer.ts";
import { apiPath } from "../docs/openapi.ts";
import { sendJson } from "../http/answer.ts";
import type { Exchange } from "../http/exchange.ts";
import { QueryReader } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { callService } from "../http/service-call.ts";
import type { WireNames } from "../http/service-error.ts";
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

/** What the routes of destinations need. */
export interface DestinationsDependencies {
  destinations: Client<typeof DestinationService>;
  bodyLimits: BodyLimits;
}

const collectionPath = `${apiPath}/observability/destinations`;
const destinationPath = `${collectionPath}/:id`;
const management = { operation: "management", access: "management" } as const;
/** Longer than the service waits for a receiver, so that one that hangs is told as such. */
const testTimeoutMs = 20_000;

/** All of /api/v1/observability/destinations. */
export function destinationRoutes(dependencies: DestinationsDependencies): readonly Route[] {
  return [
    listRoute(dependencies),
    createRoute(dependencies),
    getRoute(dependencies),
    updateRoute(dependencies),
    deleteRoute(dependencies),
    testRoute(dependencies),
    deliveriesRoute(dependencies),
    resumeRoute(dependencies),
  ];
}

function listRoute({ destinations }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "GET",
    path: collectionPath,
    document: listDestinationsDocument,
    async handle(exchange) {
      const request = readPage(exchange);
      const page = await callService(exchange, (options) => destinations.listDestinations(request, options));
      const data = page.destinations.map(toDestinationBody);
      await sendJson(exchange, 200, { data, total_count: Number(page.totalCount) });
    },
  };
}

function createRoute({ destinations, bodyLimits }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "POST",
    path: collectionPath,
    document: createDestinationDocument,
    async handle(exchange) {
      const request = toCreateDestinationRequest(await readJsonBody(exchange, bodyLimits));
      const call = (options: CallOptions) => destinations.createDestination(request, options);
      await sendDestination(exchange, call, 201);
    },
  };
}

function getRoute({ destinations }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "GET",
    path: destinationPath,
    document: getDestinationDocument,
    async handle(exchange) {
      const id = knownId(exchange);
      await sendDestination(exchange, (options) => destinations.getDestination({ id }, options));
    },
  };
}

function updateRoute({ destinations, bodyLimits }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "PATCH",
    path: destinationPath,
    document: updateDestinationDocument,
    async handle(exchange) {
      const change = toUpdateDestinationRequest(await readJsonBody(exchange, bodyLimits));
      const request = { ...change, id: knownId(exchange) };
      await sendDestination(exchange, (options) => destinations.updateDestination(request, options));
    },
  };
}

function deleteRoute({ destinations }: DestinationsDependencies): Route {
  return {
    operation: "deleteDestination",
    access: "management",
    method: "DELETE",
    path: destinationPath,
    document: deleteDestinationDocument,
    async handle(exchange) {
      const id = knownId(exchange);
      await callService(exchange, (options) => destinations.deleteDestination({ id }, options));
      await sendJson(exchange, 200, deletedAnswer);
    },
  };
}

function testRoute({ destinations }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "POST",
    path: `${destinationPath}/test`,
    document: testDestinationDocument,
    async handle(exchange) {
      const id = knownId(exchange);
      const timeoutMs = testTimeoutMs;
      const tested = await callService(exchange, (options) =>
        destinations.testDestination({ id }, { ...options, timeoutMs }),
      );
      await sendJson(exchange, 200, toTestBody(tested));
    },
  };
}

function deliveriesRoute({ destinations }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "GET",
    path: `${destinationPath}/deliveries`,
    document: listDeliveriesDocument,
    async handle(exchange) {
      const page = readPage(exchange);
      const request = { ...page, destinationId: knownId(exchange) };
      const { deliveries, totalCount } = await callService(exchange, (options) =>
        destinations.listDeliveries(request, options),
      );
      const data = deliveries.map(toDeliveryBody);
      await sendJson(exchange, 200, { data, total_count: Number(totalCount) });
    },
  };
}

function resumeRoute({ destinations }: DestinationsDependencies): Route {
  return {
    ...management,
    method: "POST",
    path: `${destinationPath}/resume`,
    document: resumeDestinationDocument,
    async handle(exchange) {
      const id = knownId(exchange);
      await sendDestination(exchange, (options) => destinations.resumeDestination({ id }, options));
    },
  };
}

/** What the service calls otherwise. */
const wireNames: WireNames = { "api_key_hashes.values": "api_key_hashes" };

async function sendDestination(
  exchange: Exchange,
  call: (options: CallOptions) => Promise<{ readonly destination?: Destination | undefined }>,
  status: 200 | 201 = 200,
): Promise<void> {
  const { destination } = await callService(exchange, call, wireNames);
  await sendJson(exchange, status, { data: toDestinationBody(destination) });
}

/** The id in the path. Throws record_unknown for what is none. */
function knownId({ parameters }: Exchange): string {
  const { id = "" } = parameters;
  if (!isUuid(id)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such destination");
  return id;
}

function readPage(exchange: Exchange) {
  const query = new QueryReader(exchange);
  const limit = query.integer("limit");
  const offset = query.integer("offset") ?? 0;
  query.throwIfAny();
  return { offset, ...(limit === undefined ? {} : { limit }) };
}
