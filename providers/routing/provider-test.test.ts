import { expect, test } from "vitest";
import { ProviderTestVerdict as Verdict } from "../../gen/media/routing/v1/provider_test_report_pb.ts";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { ProviderError, type ProviderErrorKind, type ProviderErrorOptions } from "../contract.ts";
import { verdictOf } from "./provider-test.ts";

test.for<[ProviderErrorKind, ProviderErrorOptions, Verdict]>([
  ["credentials", { status: 401, cause: "invalid_api_key: Incorrect API key" }, Verdict.KEY_REFUSED],
  [
    "credentials",
    { status: 403, cause: "missing_permissions: The key lacks insufficient_permissions" },
    Verdict.KEY_REFUSED,
  ],
  [
    "credentials",
    { status: 400, cause: "API_KEY_INVALID: not valid, check your credentials" },
    Verdict.KEY_REFUSED,
  ],
  ["credentials", { status: 402 }, Verdict.NO_CREDIT],
  ["credentials", { status: 429, cause: "insufficient_quota: exceeded" }, Verdict.NO_CREDIT],
  [
    "credentials",
    { status: 401, cause: "quota_exceeded: This request exceeds your quota" },
    Verdict.NO_CREDIT,
  ],
  ["credentials", { status: 403, cause: "Your account has an insufficient balance" }, Verdict.NO_CREDIT],
  ["invalid_request", { status: 404 }, Verdict.UNKNOWN_MODEL],
  ["invalid_request", { status: 400, cause: "model_not_found: x" }, Verdict.UNKNOWN_MODEL],
  ["invalid_request", { status: 400, cause: "The model `x` does not exist" }, Verdict.UNKNOWN_MODEL],
  ["invalid_request", { status: 422, cause: "Invalid model: x" }, Verdict.UNKNOWN_MODEL],
  ["invalid_request", { status: 400, cause: "voice is not one of these" }, Verdict.REFUSED],
  ["content_policy", { status: 400, cause: "moderation_blocked: no credit" }, Verdict.MODERATED],
  ["overloaded", { status: 429, cause: "rate_limit_exceeded: quota" }, Verdict.OVERLOADED],
  ["network", { cause: new OutboundHttpError("connect") }, Verdict.UNREACHABLE],
  ["network", { cause: new OutboundHttpError("reset") }, Verdict.BROKE_OFF],
  ["timeout", {}, Verdict.TIMED_OUT],
  ["upstream", { status: 500 }, Verdict.FAILED],
  ["bad_answer", {}, Verdict.BAD_ANSWER],
])("%s with %o", ([kind, options, verdict]) => {
  expect(verdictOf(new ProviderError(kind, "It failed.", options))).toBe(verdict);
});

test("a bug of ours is a failure", () => {
  expect(verdictOf(new TypeError("a bug"))).toBe(Verdict.FAILED);
});
