import { ProviderTestVerdict as Verdict } from "../../gen/media/routing/v1/provider_test_report_pb.ts";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { ProviderError, type ProviderErrorKind } from "../contract.ts";

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
