import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import type { Clock } from "../../../lib/runtime/clock.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import { withLimit } from "../../../lib/runtime/with-limit.ts";
import type { SettingsKeeper } from "../settings/settings-keeper.ts";
import type { DestinationRow } from "../store.ts";
import {
  type DeliveryContext,
  DeliveryError,
  type DeliveryReceipt,
  type DestinationType,
  type ReceiverHttp,
} from "../types/contract.ts";
import type { ClaimedBatch } from "./claim.ts";
import { toDisclosed } from "./redact.ts";

interface AttempterOptions {
  readonly keeper: SettingsKeeper;
  readonly http: ReceiverHttp;
  readonly clock: Clock;
  readonly log: Log;
  /** Longest attempt, milliseconds. */
  readonly timeoutMs: number;
}

interface AttemptResult {
  readonly isTaken: boolean;
  /** The receiver's HTTP status; 0 when it gave none. */
  readonly status: number;
  /** Why not, in a few words; empty when it was taken. */
  readonly cause: string;
  /** How long the receiver asked to wait, milliseconds. */
  readonly retryAfterMs: number | undefined;
  readonly latencyMs: number;
}

type Settings = Pick<DestinationRow, "id" | "account_id" | "type" | "sealed">;

const maxCauseLength = 200;
/** Most tests of connections under way in a process. */
const maxTests = 64;
const tooLate = "no answer came in time";
const unknownType = "this type of destination is not known any more";
const unreadable = "the settings can't be read any more; enter them anew";
const ownFault = "the delivery failed on our side";

/** Makes single attempts at receivers, each within its time. What fails is a result; nothing that a receiver said is logged. */
export class Attempter {
  readonly #options: AttempterOptions;
  #testing = 0;

  constructor(options: AttempterOptions) {
    this.#options = options;
  }

  deliver({ destination_id: id, disclosed, events, ...claimed }: ClaimedBatch): Promise<AttemptResult> {
    const batch = { id: claimed.batch_id, events, disclosed: toDisclosed(disclosed) };
    return this.#attempt({ id, ...claimed }, undefined, (type, config, context) =>
      type.deliver(batch, config, context),
    );
  }

  /** Sends what tests a connection. Throws the signal's reason, or `service_unavailable` when too many do so at once. */
  async test(settings: Settings, signal: AbortSignal): Promise<AttemptResult> {
    if (this.#testing >= maxTests) {
      throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "too many connections are being tested");
    }
    this.#testing += 1;
    try {
      return await this.#attempt(settings, signal, (type, config, context) => type.test(config, context));
    } finally {
      this.#testing -= 1;
    }
  }

  async #attempt(
    settings: Settings,
    ended: AbortSignal | undefined,
    send: (
      type: DestinationType<unknown>,
      config: unknown,
      context: DeliveryContext,
    ) => Promise<DeliveryReceipt>,
  ): Promise<AttemptResult> {
    const { keeper, http, clock, timeoutMs } = this.#options;
    const startedMs = clock.monotonicMs();
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = ended === undefined ? timeout : AbortSignal.any([ended, timeout]);
    const latencyMs = () => Math.round(clock.monotonicMs() - startedMs);
    try {
      const { type, config } = openSettings(keeper, settings);
      const context = { http, signal, nowMs: () => clock.nowMs() };
      const { status } = await withLimit(send(type, config, context), { signal });
      return { isTaken: true, status, cause: "", retryAfterMs: undefined, latencyMs: latencyMs() };
    } catch (thrown) {
      ended?.throwIfAborted();
      return { ...this.#failure(settings, thrown, timeout), latencyMs: latencyMs() };
    }
  }

  #failure({ id }: Settings, thrown: unknown, timeout: AbortSignal): Omit<AttemptResult, "latencyMs"> {
    const failed = { isTaken: false, status: 0, retryAfterMs: undefined };
    if (thrown instanceof DeliveryError) {
      const { status = 0, message, retryAfterMs } = thrown;
      return { isTaken: false, status, cause: message.slice(0, maxCauseLength), retryAfterMs };
    }
    if (timeout.aborted) return { ...failed, cause: tooLate };
    this.#options.log.error({ err: thrown, destination_id: id }, "an attempt at a destination broke");
    return { ...failed, cause: ownFault };
  }
}

function openSettings(keeper: SettingsKeeper, settings: Settings) {
  const type = keeper.type(settings.type);
  if (type === undefined) throw new DeliveryError(unknownType);
  const config = keeper.open(settings);
  if (config === undefined) throw new DeliveryError(unreadable);
  const read = type.readConfig(config);
  if ("issues" in read) throw new DeliveryError(unreadable);
  return { type, config: read.config };
}
