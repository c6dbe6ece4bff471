import {
  measureGenerations,
  measureUsageDoubts,
  watchPaidRequests,
} from "../generation/generation-metrics.ts";
import { type OpenPaidRequests, openPaidRequests } from "../generation/open-paid-requests.ts";
import type { paidSpec } from "../generation/paid-spec.ts";
import type { RunningGenerations } from "../generation/running-generations.ts";
import type { KeyAuthenticator } from "../identity/authenticate.ts";
import type { ConfigOf } from "../runtime/config.ts";
import type { ProcessLimits } from "./open-limits.ts";
import type { ServiceHost } from "./run-service.ts";

/** What a service that generates is connected to. */
export interface Generation {
  readonly paid: OpenPaidRequests;
  readonly authenticateKey: KeyAuthenticator;
}

/** What the services of a process that generate share. */
export interface GeneratorParts extends ProcessLimits {
  /** Where generations are counted while they run; by each service for itself unless given. */
  readonly running?: RunningGenerations;
}

/** How long a process that stops waits for its last events to be safe, milliseconds. */
const flushTimeoutMs = 10_000;

/** Opens the paid requests of a service. When it stops, it waits until the events of ended requests are safe. */
export async function openGeneration(
  host: ServiceHost,
  config: ConfigOf<typeof paidSpec>,
  running?: RunningGenerations,
): Promise<Generation> {
  const { name, log, metrics, bus } = host;
  const { account, authenticateKey } = await host.connectAccount();
  const paid = openPaidRequests({
    account,
    bus,
    settleWaitMs: config.SETTLE_WAIT_MS,
    byokFeePercent: config.BYOK_FEE_PERCENT,
    log,
    onEvent: measureGenerations(metrics),
    onUsageDoubt: measureUsageDoubts(metrics),
    ...(running === undefined ? {} : { running }),
  });
  host.onStop(() => paid.close(flushTimeoutMs));
  watchPaidRequests(metrics, name, paid);
  return { paid, authenticateKey };
}
