import { DestinationAdminService } from "../../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { isDataFault, translateDatabaseErrors } from "../../../lib/database/database-errors.ts";
import { schemaProblems } from "../../../lib/database/migrate.ts";
import { EventConsumer } from "../../../lib/events/batch-consumer.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { maxEventAgeMs } from "../../../lib/events/event-age.ts";
import { groups } from "../../../lib/events/topics.ts";
import { defaultMessageLimits, type MessageLimits } from "../../../lib/rpc/registered-method.ts";
import { type Clock, systemClock } from "../../../lib/runtime/clock.ts";
import { silentTracer } from "../../../lib/runtime/span.ts";
import type { Sealer } from "../../../lib/secrets/seal.ts";
import { callInterceptors, type ServiceCallOptions } from "../../../lib/service/call-interceptors.ts";
import type { Service } from "../../../lib/service/run-service.ts";
import { createAdminHandlers, type RecordDestinationAction } from "../admin-rpc.ts";
import { Attempter } from "../delivery/attempt.ts";
import { readBacklog } from "../delivery/backlog.ts";
import { Deliveries, noneCounted } from "../delivery/deliveries.ts";
import { type DeliveryLimits, defaultDeliveryLimits } from "../delivery/delivery-limits.ts";
import { type DeliveryTotals, watchDeliveries } from "../delivery/delivery-metrics.ts";
import { dispatchEvents } from "../delivery/dispatch.ts";
import { type Housekeeping, startHousekeeping } from "../delivery/housekeeping.ts";
import type { Receivers } from "../delivery/receivers.ts";
import { destinationMigrations } from "../migrations.ts";
import { createDestinationHandlers } from "../rpc.ts";
import type { DestinationDatabase } from "../store.ts";
import { type DestinationTypes, SettingsKeeper } from "./settings-keeper.ts";

interface DestinationServiceOptions extends ServiceCallOptions {
  readonly database: DestinationDatabase;
  readonly bus: Bus;
  readonly types: DestinationTypes;
  readonly sealer: Sealer;
  /** Not closed by the service. */
  readonly receivers: Receivers;
  /** How many days a copy of an event is recognized. */
  readonly retentionDays: number;
  /** What differs from the defaults. */
  readonly limits?: Partial<DeliveryLimits>;
  readonly recordAction: RecordDestinationAction;
  /** From 0 to below 1. */
  random?(): number;
}

/** The destination service, to be put on a port or called in this process. It is ready while the bus is away. */
export type RunnableDestinationService = ReturnType<typeof createDestinationService>;

/** What its RPCs take and give: a page of destinations is one message, and each may have settings of 64 KiB. */
const messageLimits: MessageLimits = { ...defaultMessageLimits, writeMaxBytes: 16 << 20 };

/** Of a type that is not known here: its batches are refused whatever they hold. */
const unknownTypeBatchEvents = 100;

/** The destination service on a database and a bus. */
export function createDestinationService(options: DestinationServiceOptions) {
  const { database, log, types, clock = systemClock } = options;
  const keeper = new SettingsKeeper(options);
  const limits = { ...defaultDeliveryLimits, ...options.limits };
  const { http } = options.receivers;
  const attempter = new Attempter({ keeper, http, clock, log, timeoutMs: limits.attemptTimeoutMs });
  let running: Background | undefined;
  const service = {
    services: [DestinationService, DestinationAdminService],
    routes(router) {
      const translate = [translateDatabaseErrors];
      const interceptors = callInterceptors({ ...options, audience: "destination", clock, translate });
      const onDue = () => running?.deliveries.wake();
      const parts = { database, keeper, attempter, onDue };
      router.service(DestinationService, createDestinationHandlers(parts), {
        interceptors,
        ...messageLimits,
      });
      const adminHandlers = createAdminHandlers({ ...parts, log, recordAction: options.recordAction });
      router.service(DestinationAdminService, adminHandlers, { interceptors });
    },
    readiness: () => schemaProblems(database, destinationMigrations),
    start() {
      const { random = Math.random } = options;
      const maxBatchEvents = (type: string) => types.get(type)?.maxBatchEvents ?? unknownTypeBatchEvents;
      const deliveries = new Deliveries({ database, attempter, limits, log, random, maxBatchEvents });
      const consumer = startConsumer(options, clock, deliveries);
      running = { deliveries, consumer, housekeeping: startHousekeeping({ ...options, keeper, limits }) };
    },
    get consumer() {
      return running?.consumer;
    },
    get deliveries() {
      return running?.deliveries;
    },
    /** How delivery goes, for metrics. Rejects when the database is away. */
    async deliveryTotals(): Promise<DeliveryTotals> {
      const { deliveries, housekeeping } = running ?? {};
      const counters = deliveries?.counters ?? noneCounted;
      const { givenUpEvents = 0 } = housekeeping ?? {};
      return { ...counters, givenUpEvents, ...(await readBacklog(database)) };
    },
    async stop() {
      await Promise.all([running?.consumer.stop(), running?.deliveries.stop(), running?.housekeeping.stop()]);
    },
  } satisfies Service & Record<string, unknown>;
  if (options.metrics !== undefined) watchDeliveries(options.metrics, service, log);
  return service;
}

interface Background {
  readonly consumer: EventConsumer;
  readonly deliveries: Deliveries;
  readonly housekeeping: Housekeeping;
}

function startConsumer(
  { database, log, bus, retentionDays, tracer = silentTracer }: DestinationServiceOptions,
  clock: Clock,
  deliveries: Deliveries,
): EventConsumer {
  return new EventConsumer({
    bus,
    group: groups.destination,
    log,
    clock,
    tracer,
    maxAgeMs: maxEventAgeMs(retentionDays),
    async apply(events, signal) {
      const { queuedCount, refused } = await dispatchEvents(database, events, signal);
      if (queuedCount > 0) deliveries.wake();
      return refused;
    },
    isPoison: isDataFault,
  });
}
