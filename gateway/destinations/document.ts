import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  DeliverySchema,
  DeliveryStatus,
  DestinationSchema,
} from "../../gen/media/destination/v1/destination_pb.ts";
import { destinationPage } from "../../lib/limits/destination-limits.ts";
import { deletedAnswer, deletedAnswerSchema } from "../docs/deleted-answer.ts";
import { jsonAnswer } from "../docs/json-answer.ts";
import { idParameter, pageParameters } from "../docs/parameters.ts";
import type { RouteDocument } from "../docs/route-document.ts";
import {
  deliveryListSchema,
  destinationAnswerSchema,
  destinationListSchema,
  destinationTestSchema,
  toDeliveryBody,
  toDestinationBody,
} from "./answer.ts";
import { createDestinationBodySchema, updateDestinationBodySchema } from "./body.ts";

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

const tag = "Destinations";
const answer = (description: string, status?: 201) =>
  jsonAnswer(description, "Destination", destinationAnswerSchema, { data: destination }, status);

/** What the OpenAPI document says of GET /observability/destinations. */
export const listDestinationsDocument: RouteDocument = {
  id: "listDestinations",
  tag,
  summary: "Where usage events are delivered",
  description: "Oldest first, 50 a page. Management keys only.",
  parameters: page,
  answer: jsonAnswer("The destinations.", "DestinationList", destinationListSchema, {
    data: [destination],
    total_count: 1,
  }),
  errors: [400, 401, 403, 500],
};

/** What it says of POST /observability/destinations. */
export const createDestinationDocument: RouteDocument = {
  id: "createDestination",
  tag,
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
  errors: [400, 401, 403, 409, 500],
};

/** What it says of GET /observability/destinations/{id}. */
export const getDestinationDocument: RouteDocument = {
  id: "getDestination",
  tag,
  summary: "One destination",
  description: "Its secrets are masked, and so is what may be a token in an address. Management keys only.",
  parameters: [idParameter],
  answer: answer("The destination."),
  errors: [401, 403, 404, 500],
};

/** What it says of PATCH /observability/destinations/{id}. */
export const updateDestinationDocument: RouteDocument = {
  id: "updateDestination",
  tag,
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
  errors: [400, 401, 403, 404, 500],
};

/** What it says of DELETE /observability/destinations/{id}. */
export const deleteDestinationDocument: RouteDocument = {
  id: "deleteDestination",
  tag,
  summary: "Delete a destination",
  description:
    "Nothing more is delivered, and its id is never found again. Management keys only: to others it does not exist.",
  parameters: [idParameter],
  answer: jsonAnswer("It is gone.", "Deleted", deletedAnswerSchema, deletedAnswer),
};

/** What it says of POST /observability/destinations/{id}/test. */
export const testDestinationDocument: RouteDocument = {
  id: "testDestination",
  tag,
  summary: "Test a destination",
  description: "Sends a marked payload without events and tells what came of it. Management keys only.",
  parameters: [idParameter],
  answer: jsonAnswer("What came of it.", "DestinationTest", destinationTestSchema, {
    data: { ok: false, status: 401, cause: "the receiver does not accept the credentials" },
  }),
  errors: [401, 403, 404, 500],
};

/** What it says of GET /observability/destinations/{id}/deliveries. */
export const listDeliveriesDocument: RouteDocument = {
  id: "listDeliveries",
  tag,
  summary: "What was delivered",
  description:
    "Attempts, newest first, 50 a page; the newest 1,000 are kept, for 7 days. Management keys only.",
  parameters: [idParameter, ...page],
  answer: jsonAnswer("The attempts.", "DeliveryList", deliveryListSchema, {
    data: [delivery],
    total_count: 1,
  }),
  errors: [400, 401, 403, 404, 500],
};

/** What it says of POST /observability/destinations/{id}/resume. */
export const resumeDestinationDocument: RouteDocument = {
  id: "resumeDestination",
  tag,
  summary: "Deliver again",
  description:
    "Ends a pause after sustained failure, or the wait before the next attempt. What waited, at most a day's events, is delivered. Management keys only.",
  parameters: [idParameter],
  answer: answer("The destination as it is now."),
  errors: [401, 403, 404, 500],
};
