/**
 * What a type of destination is to this system: how its settings are checked, and how a batch of events is put into its
 * wire format and sent. It knows nothing of accounts, filters, retries or storage.
 *
 * 1. `deliver` makes exactly one attempt and resolves only once the receiver has said that it took the whole batch.
 * 2. It throws DeliveryError only; the receiver's own words stay in `cause`.
 * 3. It reaches the outside through `context.http` alone, which checks addresses when it connects.
 * 4. The same batch gives the same body and the same delivery id, whoever sends it and how often.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import type { Issue } from "../../../lib/runtime/domain-error.ts";

/** Events for one destination: filtered, sampled and redacted already. */
export interface Batch {
  /** Stable over all attempts at this batch; UUID. */
  readonly id: string;
  /** At least one, in the order of their ends. What is not disclosed stands at its default. */
  readonly events: readonly GenerationEvent[];
  /** What of the events is disclosed beyond the generation itself. */
  readonly disclosed: {
    readonly cost: boolean;
    /** Key name, member and end user. */
    readonly identity: boolean;
    /** Session id and trace. */
    readonly requestContext: boolean;
  };
}

interface ReceiverRequest {
  readonly method: "POST" | "PUT";
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** A receiver's answer, its body cut off after 4 KiB. */
export interface ReceiverAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * The one way to a receiver: addresses checked when it connects, TLS verified, no redirect followed, answers capped.
 * Throws DeliveryError where there is no answer.
 */
export interface ReceiverHttp {
  send(request: ReceiverRequest): Promise<ReceiverAnswer>;
}

/** What surrounds one attempt. */
export interface DeliveryContext {
  readonly http: ReceiverHttp;
  /** Ends the attempt; fires also on its deadline. */
  readonly signal: AbortSignal;
  /** Wall clock, Unix milliseconds. */
  readonly nowMs: () => number;
}

/** What a receiver's taking of a batch looked like. */
export interface DeliveryReceipt {
  /** The receiver's HTTP status. */
  readonly status: number;
}

/** A type of destination with settings of type C. */
export interface DestinationType<C> {
  /** Lower-case slug, the name of its folder. */
  readonly slug: string;
  /** Names of settings that are secrets: sealed at rest and masked on read. Values of `headers` always are. */
  readonly secrets: readonly string[];
  /** Checks the settings and fills in defaults; issues have paths that begin with `config`. */
  readConfig(config: JsonObject): { readonly config: C } | { readonly issues: readonly Issue[] };
  /** Every address that it may call, for the check on save. */
  urlsOf(config: C): readonly URL[];
  /** Most events of one batch. */
  readonly maxBatchEvents: number;
  /** Sends a batch. Throws DeliveryError. */
  deliver(batch: Batch, config: C, context: DeliveryContext): Promise<DeliveryReceipt>;
  /** Sends a marked payload without events. Throws DeliveryError. */
  test(config: C, context: DeliveryContext): Promise<DeliveryReceipt>;
}

interface DeliveryErrorOptions {
  /** The receiver's HTTP status; leave out when it gave none. */
  readonly status?: number;
  /** How long the receiver asked to wait, milliseconds. */
  readonly retryAfterMs?: number;
  /** The receiver's own words or the thrown error: for the log, never for people. */
  readonly cause?: unknown;
}

/** The one error of destination types. Its message is a few words of our own that help: `the connection was refused`. */
export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: DeliveryErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}
