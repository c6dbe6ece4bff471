import { type Client, createContextValues } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import type { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { type Span, silentSpan, spanKey } from "../runtime/span.ts";
import { isExpired } from "./access.ts";
import { hashApiKey, isApiKey } from "./api-key.ts";
import type { Stranger } from "./stranger.ts";

/*
 * Owns what a process caches of the keys it has seen.
 * 1. A principal is used for at most `ttlMs` from when it was asked for, so that disabling a key holds everywhere by then.
 * 2. A refusal is remembered shortly and apart, so that bad keys neither reach the account service each time nor push
 *    good ones out.
 * 3. One look-up at a time for each key, whoever waits for it; it ends with its own deadline, not with a caller.
 * 4. Only a refusal of the key itself is a refusal; every other failure is `service_unavailable`.
 * 5. A key that was good when it was last looked up is never refused for whom it comes from. For any other the stranger
 *    who brings it is counted before anything is looked up.
 */

/** Asks who a key speaks for by its hash. A refusal of the key carries an issue whose path is `keyHashPath`. */
export type KeyLookUp = (keyHash: string, signal: AbortSignal, span: Span) => Promise<Principal>;

/** Path of the issue that marks an error as being about the key asked for and not about who asks. */
export const keyHashPath = "key_hash";

/**
 * Who an API key speaks for. Throws `key_unknown`, `key_expired`, `key_disabled`, `service_unavailable`, or
 * `rate_limited` for a stranger who brings too many bad ones. A look-up is part of the span of whoever asked first.
 */
export type KeyAuthenticator = (key: string, span?: Span, stranger?: Stranger) => Promise<Principal>;

/** How keys are looked up and remembered; times in milliseconds. */
interface KeyAuthenticatorOptions {
  lookUp: KeyLookUp;
  /** How long a principal is used; defaults to 5 s, which is the most there may be. */
  ttlMs?: number;
  /** How long a refusal is remembered; defaults to 2 s. */
  refusalTtlMs?: number;
  /** Deadline of one look-up; defaults to 3 s. */
  lookUpTimeoutMs?: number;
  /** How many keys are remembered, and as many refusals; defaults to 10,000. */
  maxEntries?: number;
  clock?: Clock;
}

interface KnownKey {
  readonly principal: Principal;
  readonly untilMs: number;
}

interface RefusedKey {
  readonly reason: ErrorReason;
  readonly message: string;
  readonly untilMs: number;
}

/** An authenticator with a cache of its own. */
export function createKeyAuthenticator(options: KeyAuthenticatorOptions): KeyAuthenticator {
  const keys = new KeyCache(options);
  return (key, span, stranger) => keys.authenticate(key, span, stranger);
}

class KeyCache {
  readonly #options: KeyAuthenticatorOptions;
  readonly #clock: Clock;
  readonly #known: LRUCache<string, KnownKey>;
  readonly #refused: LRUCache<string, RefusedKey>;
  readonly #inFlight = new Map<string, Promise<Principal>>();

  constructor(options: KeyAuthenticatorOptions) {
    const { clock = systemClock, maxEntries = 10_000 } = options;
    this.#options = options;
    this.#clock = clock;
    this.#known = new LRUCache({ max: maxEntries });
    this.#refused = new LRUCache({ max: maxEntries });
  }

  async authenticate(
    key: string,
    span: Span = silentSpan,
    stranger: Stranger | undefined = undefined,
  ): Promise<Principal> {
    if (!isApiKey(key)) {
      stranger?.count();
      throw new DomainError(ErrorReason.KEY_UNKNOWN, "the key is malformed");
    }
    const keyHash = hashApiKey(key);
    const nowMs = this.#clock.monotonicMs();
    const last = this.#known.get(keyHash);
    const principal =
      fresh(last, nowMs)?.principal ??
      (await this.#ask(keyHash, span, last === undefined ? stranger : undefined)); // 5.
    if (isExpired(principal, this.#clock.nowMs())) {
      throw new DomainError(ErrorReason.KEY_EXPIRED, "the key has expired");
    }
    return principal;
  }

  /** The stranger is counted for the look-up that he causes, and for each refusal. */
  async #ask(keyHash: string, span: Span, stranger: Stranger | undefined): Promise<Principal> {
    const refusal = fresh(this.#refused.get(keyHash), this.#clock.monotonicMs());
    if (refusal !== undefined) {
      stranger?.count();
      throw new DomainError(refusal.reason, refusal.message);
    }
    const shared = this.#inFlight.get(keyHash);
    if (shared !== undefined) {
      return shared.catch((thrown: unknown) => {
        if (!isUnavailable(thrown)) stranger?.count();
        throw thrown;
      });
    }
    stranger?.count();
    const looking = this.#lookUp(keyHash, span);
    this.#inFlight.set(keyHash, looking); // 3.
    try {
      const principal = await looking;
      stranger?.forgive();
      return principal;
    } catch (thrown) {
      if (isUnavailable(thrown)) stranger?.forgive();
      throw thrown;
    }
  }

  async #lookUp(keyHash: string, span: Span): Promise<Principal> {
    const { lookUp, lookUpTimeoutMs = 3000, refusalTtlMs = 2000, ttlMs = 5000 } = this.#options;
    const startedMs = this.#clock.monotonicMs();
    try {
      const principal = await lookUp(keyHash, AbortSignal.timeout(lookUpTimeoutMs), span);
      this.#known.set(keyHash, { principal, untilMs: startedMs + ttlMs }); // 1.
      return principal;
    } catch (thrown) {
      this.#known.delete(keyHash);
      const { reason, message } = refusalOf(thrown);
      this.#refused.set(keyHash, { reason, message, untilMs: this.#clock.monotonicMs() + refusalTtlMs }); // 2.
      throw new DomainError(reason, message);
    } finally {
      this.#inFlight.delete(keyHash);
    }
  }
}

function isUnavailable(thrown: unknown): boolean {
  return DomainError.from(thrown).reason === ErrorReason.SERVICE_UNAVAILABLE;
}

function fresh<E extends { untilMs: number }>(entry: E | undefined, nowMs: number): E | undefined {
  return entry !== undefined && nowMs < entry.untilMs ? entry : undefined;
}

const keyReasons: readonly ErrorReason[] = [
  ErrorReason.KEY_UNKNOWN,
  ErrorReason.KEY_EXPIRED,
  ErrorReason.KEY_DISABLED,
];

/** The refusal of the key, or else a thrown `service_unavailable`. */
function refusalOf(thrown: unknown): { reason: ErrorReason; message: string } {
  const { reason, issues } = DomainError.from(thrown);
  const issue = issues.find(({ path }) => path === keyHashPath);
  if (issue !== undefined && keyReasons.includes(reason)) return { reason, message: issue.message }; // 4.
  throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "keys can't be checked now", { cause: thrown });
}

/** A refusal of a key, as a KeyLookUp throws it. */
export function keyRefusal(
  reason: typeof ErrorReason.KEY_UNKNOWN | typeof ErrorReason.KEY_EXPIRED | typeof ErrorReason.KEY_DISABLED,
  message: string,
): DomainError {
  return new DomainError(reason, message, { issues: [{ path: keyHashPath, message }] });
}

/** Looks keys up at the account service. */
export function lookUpOverRpc(client: Client<typeof AccountInternalService>): KeyLookUp {
  return async (keyHash, signal, span) => {
    const contextValues = createContextValues().set(spanKey, span);
    const { principal } = await client.authenticate({ keyHash }, { signal, contextValues });
    if (principal === undefined) throw new DomainError(ErrorReason.INTERNAL, "an answer without principal");
    return principal;
  };
}
