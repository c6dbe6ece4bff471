/**
 * A test of a provider: one live call with the operator's key, at the endpoint where it is cheapest.
 *
 * 1. One at a time in a process, within `timeoutMs`, and for at most `maxTestCostNanoUsd` by the price list.
 * 2. The audit has it before anything is sent; where that can't be written nothing is.
 * 3. It holds and charges nothing, leaves no record, and says nothing to the health that routing goes by.
 * 4. The vendor's words go nowhere, but for what they mean.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type ProviderTestReportSchema,
  ProviderTestVerdict as Verdict,
} from "../../gen/media/routing/v1/provider_test_report_pb.ts";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { formatUsd } from "../../lib/money/nano-usd.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { withLimit } from "../../lib/runtime/with-limit.ts";
import type { Endpoint } from "../catalog/catalog.ts";
import { type AttemptContext, ProviderError, type ProviderErrorKind } from "../contract.ts";
import type { Candidate } from "./candidate.ts";

/** Most that a test may cost by the price list: 0.5 USD. */
const maxTestCostNanoUsd = 500_000_000n;

/** Who asks for a test, and of what. */
export interface AskedTest {
  readonly operator: string;
  readonly providerSlug: string;
  /** Which of the operator's keys, from 1; undefined: the first. */
  readonly operatorKey: number | undefined;
}

/** What is particular to a medium. */
export interface TestedMedium<E extends Endpoint> {
  readonly name: "speech" | "image";
  /** Of every provider. */
  readonly endpoints: readonly E[];
  /** Whether enough is known to ask it. */
  canTry(endpoint: E): boolean;
  /** By the price list, nano-USD. */
  mostCost(endpoint: E): bigint;
  /** What comes of the call, which it begins. Throws ProviderError. */
  outputs(
    endpoint: Candidate<E>,
    bounds: Omit<AttemptContext, "connection">,
  ): AsyncGenerator<unknown, unknown>;
}

interface ProviderTestOptions {
  operatorKeys(slug: string): number;
  /** Writes into the audit that an operator has a provider tried. Throws DomainError. */
  record(test: {
    readonly operator: string;
    readonly providerSlug: string;
    readonly note: string;
  }): Promise<unknown>;
  readonly clock: Clock;
  /** From sending to the end, milliseconds. */
  readonly timeoutMs: number;
}

type Report = MessageInitShape<typeof ProviderTestReportSchema>;

/** The tests of a process; see the head of the file. */
export class ProviderTests {
  readonly #options: ProviderTestOptions;
  #isUnderWay = false;

  constructor(options: ProviderTestOptions) {
    this.#options = options;
  }

  /** Tries a provider. Throws `rate_limited` while another test is under way, and what recording throws. */
  async run<E extends Endpoint>(
    asked: AskedTest,
    medium: TestedMedium<E>,
    signal: AbortSignal,
    log: Log,
  ): Promise<Report> {
    if (this.#isUnderWay) throw new DomainError(ErrorReason.RATE_LIMITED, "another test is under way"); // 1.
    this.#isUnderWay = true;
    try {
      return await this.#run(asked, medium, signal, log);
    } finally {
      this.#isUnderWay = false;
    }
  }

  async #run<E extends Endpoint>(
    { operator, providerSlug, operatorKey = 1 }: AskedTest,
    medium: TestedMedium<E>,
    signal: AbortSignal,
    log: Log,
  ): Promise<Report> {
    const operatorKeys = this.#options.operatorKeys(providerSlug);
    const offers = medium.endpoints.filter((endpoint) => endpoint.providerSlug === providerSlug);
    if (offers.length === 0) return { verdict: Verdict.NOT_OFFERED };
    if (operatorKey < 1 || operatorKey > operatorKeys) return { verdict: Verdict.OFF, operatorKeys };
    const endpoint = cheapest(offers, medium);
    if (endpoint === undefined) return { verdict: Verdict.VOICE_NEEDED };
    const mostCostNanoUsd = medium.mostCost(endpoint);
    if (mostCostNanoUsd > maxTestCostNanoUsd) return { verdict: Verdict.TOO_DEAR, mostCostNanoUsd };
    const note = `${medium.name}: ${endpoint.model}, at most ${formatUsd(mostCostNanoUsd)} USD there`;
    await this.#options.record({ operator, providerSlug, note }); // 2.
    const { error, ...report } = await this.#try(
      { ...endpoint, operatorKey: operatorKey - 1 },
      medium,
      signal,
    );
    const fields = { operator, provider: providerSlug, endpoint_id: endpoint.id };
    if (error === undefined) log.info(fields, "provider test: it answers");
    else if (error instanceof ProviderError)
      log.warn({ ...fields, detail: error.message }, "provider test failed"); // 4.
    else log.error({ ...fields, err: error }, "provider test failed");
    const { id: endpointId, model, upstreamModel } = endpoint;
    return { ...report, endpointId, model, upstreamModel, mostCostNanoUsd, operatorKeys };
  }

  async #try<E extends Endpoint>(
    endpoint: Candidate<E>,
    medium: TestedMedium<E>,
    caller: AbortSignal,
  ): Promise<Omit<Report, "$typeName"> & { readonly error?: unknown }> {
    const { clock, timeoutMs } = this.#options;
    const late = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([caller, late]);
    const startedMs = clock.monotonicMs();
    const sinceStart = () => clock.monotonicMs() - startedMs;
    const outputs = medium.outputs(endpoint, { signal, onSent: () => undefined });
    let firstMs: number | undefined;
    try {
      while (!(await withLimit(outputs.next(), { signal })).done) firstMs ??= sinceStart();
      if (firstMs === undefined) throw new ProviderError("bad_answer", "The answer is empty.");
      const verdict = firstMs > timeoutMs / 4 ? Verdict.SLOW : Verdict.OK;
      return { verdict, ...times(firstMs, sinceStart()) };
    } catch (error) {
      caller.throwIfAborted();
      const providerStatus = error instanceof ProviderError ? (error.status ?? 0) : 0;
      const failure = late.aborted ? new ProviderError("timeout", "No whole answer came in time.") : error;
      return { verdict: verdictOf(failure), providerStatus, error: failure, ...times(firstMs, sinceStart()) };
    } finally {
      // Where it does not end with its signal it is nobody's concern any more.
      outputs.return(undefined).catch(() => undefined);
    }
  }
}

/** Undefined where none can be tried. */
function cheapest<E extends Endpoint>(offers: readonly E[], medium: TestedMedium<E>): E | undefined {
  const costs = new Map(
    offers.filter(medium.canTry).map((endpoint) => [endpoint, medium.mostCost(endpoint)]),
  );
  const [best] = [...costs].toSorted(([, one], [, other]) => (one < other ? -1 : one > other ? 1 : 0));
  return best?.[0];
}

function times(firstMs: number | undefined, totalMs: number): Pick<Report, "firstOutput" | "total"> {
  const total = durationFromMs(Math.round(totalMs));
  return firstMs === undefined ? { total } : { total, firstOutput: durationFromMs(Math.round(firstMs)) };
}

const byKind: Readonly<Record<ProviderErrorKind, Verdict>> = {
  invalid_request: Verdict.REFUSED,
  nothing_to_speak: Verdict.REFUSED,
  content_policy: Verdict.MODERATED,
  credentials: Verdict.KEY_REFUSED,
  overloaded: Verdict.OVERLOADED,
  engine_full: Verdict.OVERLOADED,
  timeout: Verdict.TIMED_OUT,
  network: Verdict.BROKE_OFF,
  upstream: Verdict.FAILED,
  bad_answer: Verdict.BAD_ANSWER,
};

/** What vendors say of an account without means; they have no status or code in common. */
const ofCredit = /quota|billing|credit(?!ential)|balance|funds|payment|insufficient_(?!perm|scope)/i;
const ofUnknownModel =
  /model.{0,80}(not.?found|not.?exist|unknown|invalid|not.?supported)|(unknown|invalid|no such).{0,20}model/is;

/** What a failed test means to an operator: finer than what routing must know, and so a judgement of the vendor's words. */
export function verdictOf(error: unknown): Verdict {
  if (!(error instanceof ProviderError)) return Verdict.FAILED;
  const { kind, status, cause } = error;
  const words = typeof cause === "string" ? cause : "";
  if (kind === "credentials" && (status === 402 || ofCredit.test(words))) return Verdict.NO_CREDIT;
  if (kind === "invalid_request" && (status === 404 || ofUnknownModel.test(words)))
    return Verdict.UNKNOWN_MODEL;
  if (kind === "network" && cause instanceof OutboundHttpError && cause.kind === "connect")
    return Verdict.UNREACHABLE;
  return byKind[kind];
}
