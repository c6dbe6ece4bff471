import { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { isDataFault, translateDatabaseErrors } from "../../lib/database/database-errors.ts";
import { schemaProblems } from "../../lib/database/migrate.ts";
import { EventConsumer } from "../../lib/events/batch-consumer.ts";
import type { Bus } from "../../lib/events/bus.ts";
import { maxEventAgeMs } from "../../lib/events/event-age.ts";
import { watchConsumer } from "../../lib/events/event-metrics.ts";
import { groups } from "../../lib/events/topics.ts";
import { defaultMessageLimits, type MessageLimits } from "../../lib/rpc/registered-method.ts";
import { systemClock } from "../../lib/runtime/clock.ts";
import type { Repeating } from "../../lib/runtime/repeat.ts";
import { silentTracer } from "../../lib/runtime/span.ts";
import { callInterceptors, type ServiceCallOptions } from "../../lib/service/call-interceptors.ts";
import type { Service } from "../../lib/service/run-service.ts";
import { createAdminHandlers } from "./admin-rpc.ts";
import { startCatchUp } from "./generations/catch-up.ts";
import { usageMigrations } from "./migrations.ts";
import { startPruner } from "./prune.ts";
import { recordEvents } from "./record.ts";
import { createUsageHandlers } from "./rpc.ts";
import type { UsageDatabase } from "./store.ts";

interface UsageServiceOptions extends ServiceCallOptions {
  readonly database: UsageDatabase;
  readonly bus: Bus;
  /** How many whole days records are kept after the one they are counted on. */
  readonly retentionDays: number;
}

/** The usage service, to be put on a port or called in this process. It is ready while the bus is away. */
export type RunnableUsageService = ReturnType<typeof createUsageService>;

/** Above it nothing is gained, and a batch that fails is more work to do again. */
const maxBatchMessages = 2000;

/** Activity of the whole window is one message, which grows with the endpoints that were used. */
const messageLimits: MessageLimits = { ...defaultMessageLimits, writeMaxBytes: 16 << 20 };

/** The usage service on a database and a bus. */
export function createUsageService(options: UsageServiceOptions) {
  const { database, log, bus, retentionDays, clock = systemClock } = options;
  const { tracer = silentTracer } = options;
  const translate = [translateDatabaseErrors];
  const interceptors = callInterceptors({ ...options, audience: "usage", clock, translate });
  let consumer: EventConsumer | undefined;
  let pruner: Repeating | undefined;
  let catchUp: Repeating | undefined;
  if (options.metrics !== undefined) watchConsumer(options.metrics, groups.usage, () => consumer);
  return {
    services: [UsageService, UsageAdminService],
    routes(router) {
      const handlers = createUsageHandlers(database, clock);
      router.service(UsageService, handlers, { interceptors, ...messageLimits });
      const adminHandlers = createAdminHandlers({ database, clock, retentionDays });
      router.service(UsageAdminService, adminHandlers, { interceptors });
    },
    readiness: () => schemaProblems(database, usageMigrations),
    start() {
      consumer = new EventConsumer({
        bus,
        group: groups.usage,
        log,
        clock,
        maxAgeMs: maxEventAgeMs(retentionDays),
        maxBatchMessages,
        tracer,
        apply: (events, signal, bytesOf) => recordEvents(database, events, signal, bytesOf),
        isPoison: isDataFault,
      });
      pruner = startPruner({ database, log, clock, retentionDays });
      catchUp = startCatchUp({ database, log, clock });
    },
    get consumer() {
      return consumer;
    },
    async stop() {
      await Promise.all([consumer?.stop(), pruner?.stop(), catchUp?.stop()]);
    },
  } satisfies Service;
}
