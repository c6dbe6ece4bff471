import { randomUUID } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { sql } from "kysely";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { systemClock } from "../../../lib/runtime/clock.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { createSealer, type Sealer } from "../../../lib/secrets/seal.ts";
import { Attempter } from "../../../services/destination/delivery/attempt.ts";
import { Deliveries } from "../../../services/destination/delivery/deliveries.ts";
import {
  type DeliveryLimits,
  defaultDeliveryLimits,
} from "../../../services/destination/delivery/delivery-limits.ts";
import { dispatchEvents } from "../../../services/destination/delivery/dispatch.ts";
import { openReceivers, type Receivers } from "../../../services/destination/delivery/receivers.ts";
import {
  createDestination,
  type DestinationFields,
} from "../../../services/destination/settings/destinations.ts";
import {
  type DestinationTypes,
  SettingsKeeper,
} from "../../../services/destination/settings/settings-keeper.ts";
import type { DestinationDatabase } from "../../../services/destination/store.ts";
import { plainTypes } from "./destination-type.ts";

/** The master key of tests, as MASTER_KEYS has it. */
export const testKeyText = `test:${Buffer.alloc(32, 7).toString("base64")}`;

/** What settings are sealed with in tests. */
export const testSealer = createSealer(readMasterKeys(testKeyText));

/** Lets destinations lead to this machine. */
export const loopback = [{ address: "127.0.0.0", prefixLength: 8, family: "ipv4" }] as const;

/** Limits under which nothing is waited for longer than a test has time for. */
export const quickLimits: DeliveryLimits = {
  ...defaultDeliveryLimits,
  batchIntervalMs: 1,
  pollMs: 20,
  firstRetryMs: 5,
  maxRetryMs: 40,
};

/** Keeps the settings of destinations in tests, wherever they lead. */
export function testKeeper(
  types: DestinationTypes = plainTypes,
  sealer: Sealer = testSealer,
): SettingsKeeper {
  return new SettingsKeeper({
    types,
    sealer,
    receivers: { findForbidden: () => undefined },
  });
}

/** What a test says of a destination. */
export interface TestDestinationInit extends Partial<DestinationFields> {
  readonly account_id: string;
  readonly url: string;
  readonly type?: string;
  readonly config?: JsonObject;
}

/** Stores a destination to which everything of all events is disclosed, and returns its id. */
export async function addDestination(
  database: DestinationDatabase,
  { url, account_id, type = "plain", config = {}, ...fields }: TestDestinationInit,
): Promise<string> {
  const bound = { id: randomUUID(), account_id };
  const row = await createDestination(database, {
    ...bound,
    type,
    sealed: testKeeper().seal({ url, method: "POST", headers: {}, ...config }, bound),
    name: "Test",
    enabled: true,
    privacy_mode: false,
    sampling_rate: 1,
    key_hashes: null,
    filter_rules: null,
    tells_cost: true,
    tells_identity: true,
    tells_request_context: true,
    ...fields,
  });
  return row.id;
}

/** Queues events as the consumer does and returns how many were, counted for each destination. */
export async function queueEvents(
  database: DestinationDatabase,
  ...events: readonly GenerationEvent[]
): Promise<number> {
  const { queuedCount, refused } = await dispatchEvents(database, events, new AbortController().signal);
  if (refused.length > 0) throw new Error(`refused: ${refused[0]?.reason}`);
  return queuedCount;
}

/** `<event id>/<revision>` of what waits for a destination, in order. */
export async function waitingFor(database: DestinationDatabase, destinationId: string): Promise<string[]> {
  const rows = await database
    .selectFrom("pending")
    .select(["event_id", "revision"])
    .where("destination_id", "=", destinationId)
    .orderBy("position")
    .execute();
  return rows.map(({ event_id, revision }) => `${event_id}/${revision}`);
}

/** Lets the events that wait for a destination have waited so much longer. */
export async function age(database: DestinationDatabase, destinationId: string, ms: number): Promise<void> {
  await sql`UPDATE pending SET queued_at = queued_at - make_interval(secs => ${ms / 1000})
    WHERE destination_id = ${destinationId}`.execute(database);
}

/** What a test chooses about a replica. */
export interface ReplicaOptions {
  readonly database: DestinationDatabase;
  readonly limits?: Partial<DeliveryLimits>;
  readonly log?: Log;
  readonly types?: DestinationTypes;
}

/** Deliveries of one process, as the service runs them. */
export interface Replica {
  readonly deliveries: Deliveries;
  readonly receivers: Receivers;
  stop(): Promise<void>;
}

/** Starts to deliver what waits. */
export function startReplica({
  database,
  log = silentLog,
  types = plainTypes,
  ...rest
}: ReplicaOptions): Replica {
  const limits = { ...quickLimits, ...rest.limits };
  const receivers = openReceivers({ allowedCidrs: loopback });
  const { http } = receivers;
  const keeper = testKeeper(types);
  const attempter = new Attempter({
    keeper,
    http,
    clock: systemClock,
    log,
    timeoutMs: limits.attemptTimeoutMs,
  });
  const deliveries = new Deliveries({
    database,
    attempter,
    limits,
    log,
    random: () => 0.5,
    maxBatchEvents: (type) => types.get(type)?.maxBatchEvents ?? 1,
  });
  return {
    deliveries,
    receivers,
    async stop() {
      await deliveries.stop();
      await receivers.close();
    },
  };
}
