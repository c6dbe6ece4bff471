import { timestampDate } from "@bufbuild/protobuf/wkt";
import { DestinationAdminService } from "../../../gen/media/destination/v1/destination_admin_service_pb.ts";
import {
  type Delivery,
  DeliveryStatus,
  type Destination,
  PauseReason,
} from "../../../gen/media/destination/v1/destination_pb.ts";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { wordOf } from "../../../lib/limits/words.ts";
import { accountOption, type Input, longCallTimeoutMs, type Noun, type Verb } from "../command.ts";
import type { Cli } from "../connect.ts";
import type { Fields, Output } from "../output.ts";
import { resealOutput } from "./sealed.ts";

const pageSize = 100;
/** Longer than an attempt at a receiver, milliseconds. */
const testTimeoutMs = 60_000;
const columns = ["id", "type", "name", "state", "last_failure"];
const deliveryColumns = ["at", "status", "attempt", "events", "receiver_status", "took_ms", "cause"];
const statuses = {
  delivered: DeliveryStatus.DELIVERED,
  retrying: DeliveryStatus.RETRYING,
  "given up": DeliveryStatus.DEAD,
};

const one: Pick<Verb, "positionals" | "options"> = { positionals: ["id"], options: [accountOption] };

/** Where usage events are delivered to. */
export const destination: Noun = {
  name: "destination",
  alias: "destinations",
  summary: "where an account's usage events are delivered to",
  verbs: [
    {
      name: "list",
      summary: "an account's destinations, oldest first",
      options: [accountOption],
      run: listDestinations,
    },
    {
      name: "show",
      summary: "one destination, its secrets masked",
      ...one,
      async run(input, cli) {
        const { options } = await cli.seenBy(input.text("account"));
        const client = await cli.client(DestinationService, "destination");
        const { destination } = await client.getDestination({ id: input.required("id") }, options);
        return { fields: destinationFields(destination) };
      },
    },
    { name: "deliveries", summary: "its newest deliveries", ...one, run: listDeliveries },
    {
      name: "test",
      summary: "send a marked, empty payload and tell what came of it",
      ...one,
      async run(input, cli) {
        const client = await cli.client(DestinationAdminService, "destination", testTimeoutMs);
        const { ok, responseStatus, cause } = await client.testAccountDestination(await named(input, cli));
        const fields = {
          result: ok ? "the receiver took it" : "the receiver did not take it",
          receiver_status: responseStatus || undefined,
          cause: cause || undefined,
        };
        return { fields, isWrong: !ok };
      },
    },
    {
      name: "pause",
      summary: "deliver nothing to it until it is resumed",
      ...one,
      details: "Its events go on being kept, for a day. Whoever owns it may resume it, too.",
      async run(input, cli) {
        const client = await cli.client(DestinationAdminService, "destination");
        const { destination } = await client.pauseAccountDestination(await named(input, cli));
        return { fields: destinationFields(destination) };
      },
    },
    {
      name: "resume",
      summary: "deliver again, and at once",
      ...one,
      async run(input, cli) {
        const client = await cli.client(DestinationAdminService, "destination");
        const { destination } = await client.resumeAccountDestination(await named(input, cli));
        return { fields: destinationFields(destination) };
      },
    },
    {
      name: "reseal",
      summary: "seal the settings of all again with the first of MASTER_KEYS",
      details: "When provider-key reseal has run as well, the other master keys may go.",
      async run(_, cli) {
        const client = await cli.client(DestinationAdminService, "destination", longCallTimeoutMs);
        return resealOutput(await client.resealDestinations({}));
      },
    },
  ],
};

async function named(input: Input, cli: Cli) {
  return { accountId: await cli.accountId(input.text("account")), id: input.required("id") };
}

async function listDestinations(input: Input, cli: Cli): Promise<Output> {
  const { options } = await cli.seenBy(input.text("account"));
  const client = await cli.client(DestinationService, "destination");
  const rows: Fields[] = [];
  for (let offset = 0; ; offset += pageSize) {
    const { destinations } = await client.listDestinations({ offset, limit: pageSize }, options);
    rows.push(...destinations.map(destinationFields));
    if (destinations.length < pageSize) return { columns, rows };
  }
}

async function listDeliveries(input: Input, cli: Cli): Promise<Output> {
  const { options } = await cli.seenBy(input.text("account"));
  const client = await cli.client(DestinationService, "destination");
  const request = { destinationId: input.required("id"), limit: pageSize };
  const { deliveries } = await client.listDeliveries(request, options);
  return { columns: deliveryColumns, rows: deliveries.map(deliveryFields) };
}

function destinationFields(destination: Destination | undefined): Fields {
  if (destination === undefined) return {};
  const { id, type, name, createdAt, updatedAt, lastFailure, config, samplingRate } = destination;
  return {
    id,
    type,
    name,
    state: stateOf(destination),
    last_failure: lastFailure || undefined,
    sampling: samplingRate,
    settings: JSON.stringify(config ?? {}),
    created_at: createdAt && timestampDate(createdAt),
    updated_at: updatedAt && timestampDate(updatedAt),
  };
}

function stateOf({ enabled, pauseReason }: Destination): string {
  if (!enabled) return "off";
  if (pauseReason === PauseReason.OPERATOR) return "paused by an operator";
  return pauseReason === PauseReason.UNSPECIFIED ? "on" : "paused after sustained failure";
}

function deliveryFields(delivery: Delivery): Fields {
  const { attemptedAt, status, attempt, eventCount, responseStatus, latencyMs, cause } = delivery;
  return {
    at: attemptedAt && timestampDate(attemptedAt),
    status: wordOf(statuses, status),
    attempt,
    events: eventCount,
    receiver_status: responseStatus || undefined,
    took_ms: latencyMs,
    cause: cause || undefined,
  };
}
