import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RecordProviderTestRequestSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountHolds } from "../generation/account-holds.ts";
import { DurableEventStore } from "../generation/durable-event-store.ts";
import { measureGenerations, measureUsageDoubts, watchEventStore } from "../generation/generation-metrics.ts";
import { createOwnKeys } from "../generation/own-keys.ts";
import type { PaidRequests } from "../generation/paid-request.ts";
import { RunningGenerations } from "../generation/running-generations.ts";
import type { KeyAuthenticator } from "../identity/authenticate.ts";
import { systemClock } from "../runtime/clock.ts";
import type { ConfigOf } from "../runtime/config.ts";
import type { ServiceCallOptions } from "./call-interceptors.ts";
import type { ProcessLimits } from "./open-limits.ts";
import type { ServiceHost } from "./run-service.ts";
import type { paidSpec } from "./service-spec.ts";

/** What a service that generates is connected to. */
export interface Generation {
  readonly paid: PaidRequests;
  readonly running: RunningGenerations;
  readonly authenticateKey: KeyAuthenticator;
  readonly recordProviderTest: RecordProviderTest;
}

/** Writes into account's audit that an operator has a provider tried. Throws DomainError. */
export type RecordProviderTest = (
  test: MessageInitShape<typeof RecordProviderTestRequestSchema>,
) => Promise<unknown>;

/** What the services of a process that generate share. */
export interface GeneratorParts extends ProcessLimits {
  /** Where generations are counted while they run; by each service for itself unless given. */
  readonly running?: RunningGenerations;
}

/** What a service that generates is made with; everything is carried where no shedder is given. */
export interface GeneratorOptions
  extends ServiceCallOptions,
    Pick<ProcessLimits, "limiter">,
    Partial<Pick<ProcessLimits, "shedder">> {
  readonly paid: PaidRequests;
  readonly recordProviderTest: RecordProviderTest;
}

/** How long account may take to write into the audit, milliseconds. */
const recordTimeoutMs = 3000;

/** How long a process that stops waits for its last events to be safe, milliseconds. */
const flushTimeoutMs = 10_000;

/**
 * Opens the paid requests of a service; account and the bus may be away. When it stops, it waits until the events of ended
 * requests are safe; what has not ended by then leaves none, and is lost.
 */
export async function openGeneration(
  host: ServiceHost,
  config: ConfigOf<typeof paidSpec>,
  running = new RunningGenerations(),
): Promise<Generation> {
  const { name, log, metrics, bus } = host;
  const { account, authenticateKey } = await host.connectAccount();
  const holds = new AccountHolds({ account, log });
  const onEvent = measureGenerations(metrics);
  const eventStore = new DurableEventStore({ bus, holds, log, waitMs: config.SETTLE_WAIT_MS, onEvent });
  watchEventStore(metrics, name, eventStore);
  host.onStop(async () => {
    if (running.count > 0) log.warn({ count: running.count }, "generations are cut, and will be lost");
    await eventStore.close(flushTimeoutMs);
    holds.close();
  });
  const paid: PaidRequests = {
    holds,
    eventStore,
    clock: systemClock,
    ownKeys: createOwnKeys({ account }),
    byokFeePercent: config.BYOK_FEE_PERCENT,
    running,
    onUsageDoubt: measureUsageDoubts(metrics),
  };
  const recordProviderTest: RecordProviderTest = (test) =>
    account.recordProviderTest(test, { timeoutMs: recordTimeoutMs });
  return { paid, running, authenticateKey, recordProviderTest };
}
