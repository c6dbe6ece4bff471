import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { allowedStatuses, operations, toErrorAnswer } from "./error-body.ts";

const creditsUrl = "https://media.test/credits";
const reasons = Object.values(ErrorReason);
const secret = "internal words 10.0.0.7";

function answerTo(reason: ErrorReason, operation: (typeof operations)[number] = "speech") {
  return toErrorAnswer(new DomainError(reason, secret), operation, creditsUrl);
}

describe("every operation", () => {
  test.for(operations.flatMap((operation) => reasons.map((reason) => [operation, reason] as const)))(
    "%s answers reason %s with a status that it may use",
    ([operation, reason]) => {
      const { status, headers, body } = answerTo(reason, operation);
      expect(allowedStatuses(operation)).toContain(status);
      expect(body.error.code).toBe(status);
      expect(JSON.stringify(body)).not.toContain("10.0.0.7");
      expect(headers["www-authenticate"]).toBe(status === 401 ? "Bearer" : undefined);
    },
  );

  test("answers a reason that this process does not know with 500", () => {
    expect(answerTo(9999 as ErrorReason)).toMatchObject({
      status: 500,
      body: { error: { code: 500, message: "Internal Server Error", metadata: { reason: "internal" } } },
    });
  });
});

test("the statuses of each operation are the contract's", () => {
  expect(Object.fromEntries(operations.map((operation) => [operation, allowedStatuses(operation)]))).toEqual({
    speech: [400, 401, 402, 404, 429, 500, 502, 503, 524, 529],
    images: [400, 401, 402, 403, 404, 413, 429, 500, 502, 524, 529],
    activity: [400, 401, 403, 404, 500],
    deleteDestination: [401, 404, 500],
    management: [400, 401, 403, 404, 409, 500],
    consoleSession: [400, 404, 409, 429, 500],
    unrouted: [400, 404, 500],
  });
});

describe("the status and text of an error", () => {
  test.for([
    ["speech", ErrorReason.INVALID_BODY, 400, "Invalid request parameters"],
    ["speech", ErrorReason.KEY_EXPIRED, 401, "Missing Authentication header"],
    ["speech", ErrorReason.SCOPE_MISSING, 401, "Missing Authentication header"],
    ["speech", ErrorReason.INFERENCE_KEY_REQUIRED, 401, "Missing Authentication header"],
    ["speech", ErrorReason.BODY_TOO_LARGE, 400, "Invalid request parameters"],
    [
      "speech",
      ErrorReason.CREDITS_EXHAUSTED,
      402,
      "Insufficient credits. Add more using https://media.test/credits",
    ],
    ["speech", ErrorReason.MODEL_UNKNOWN, 404, "Resource not found"],
    ["speech", ErrorReason.RATE_LIMITED, 429, "Rate limit exceeded"],
    ["speech", ErrorReason.INTERNAL, 500, "Internal Server Error"],
    ["speech", ErrorReason.COUNT_LIMIT_REACHED, 500, "Internal Server Error"],
    ["speech", ErrorReason.PROVIDER_FAILED, 502, "Provider returned error"],
    ["speech", ErrorReason.SERVICE_UNAVAILABLE, 503, "Service temporarily unavailable"],
    ["speech", ErrorReason.TIMED_OUT, 524, "Request timed out. Please try again later."],
    ["speech", ErrorReason.PROVIDER_OVERLOADED, 529, "Provider returned error"],
    ["images", ErrorReason.SCOPE_MISSING, 403, "Only management keys can perform this operation"],
    ["images", ErrorReason.BODY_TOO_LARGE, 413, "Request payload too large"],
    ["images", ErrorReason.SERVICE_UNAVAILABLE, 500, "Internal Server Error"],
    ["activity", ErrorReason.MANAGEMENT_KEY_REQUIRED, 403, "Only management keys can perform this operation"],
    ["activity", ErrorReason.TIMED_OUT, 500, "Internal Server Error"],
    ["management", ErrorReason.COUNT_LIMIT_REACHED, 409, "Conflict"],
  ] as const)("%s, reason %s: %s %s", ([operation, reason, status, message]) => {
    const { body } = answerTo(reason, operation);
    expect(body.error).toMatchObject({ code: status, message });
    expect(body.error.metadata.reason).toBe(wordOfReason(reason));
  });

  test("deleting a destination discloses nothing of what is not the caller's", () => {
    const bodies = [
      ErrorReason.RECORD_UNKNOWN,
      ErrorReason.MANAGEMENT_KEY_REQUIRED,
      ErrorReason.INVALID_BODY,
    ].map((reason) => {
      const error = DomainError.invalid([{ path: "id", message: "must be a UUID" }], reason);
      return toErrorAnswer(error, "deleteDestination", creditsUrl);
    });
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(bodies[0]).toMatchObject({
      status: 404,
      body: { error: { metadata: { reason: "record_unknown" } } },
    });
  });
});

describe("metadata", () => {
  const attempts = [
    { providerName: "Acme", endpointId: "e1", providerStatus: 0, reason: ErrorReason.TIMED_OUT },
    { providerName: "Other", endpointId: "e2", providerStatus: 503, reason: ErrorReason.PROVIDER_OVERLOADED },
  ];

  test("names the attempts, the last provider and when to come back", () => {
    const error = new DomainError(ErrorReason.PROVIDER_OVERLOADED, secret, {
      attempts,
      retryAfterMs: 1200,
      generationId: "gen-tts-7",
    });
    const { headers, body } = toErrorAnswer(error, "speech", creditsUrl);
    expect(headers).toEqual({ "x-generation-id": "gen-tts-7", "x-should-retry": "true", "retry-after": "2" });
    expect(body.error.metadata).toEqual({
      reason: "provider_overloaded",
      provider_name: "Other",
      provider_status: 503,
      attempts: [
        { provider_name: "Acme", endpoint_id: "e1", status: null, reason: "timed_out" },
        { provider_name: "Other", endpoint_id: "e2", status: 503, reason: "provider_overloaded" },
      ],
      retry_after_s: 2,
    });
  });

  test("leaves out what a status has no place for", () => {
    const error = new DomainError(ErrorReason.KEY_LIMIT_REACHED, secret, {
      attempts,
      issues: [{ path: "a", message: "b" }],
      retryAfterMs: 1,
    });
    const { headers, body } = toErrorAnswer(error, "speech", creditsUrl);
    expect(headers).toEqual({ "x-should-retry": "false" });
    expect(body.error.metadata).toEqual({ reason: "key_limit_reached", retry_after_s: 1 });
  });

  test("calls a refusal between our own processes internal", () => {
    expect(answerTo(ErrorReason.CALLER_NOT_ALLOWED)).toMatchObject({
      status: 500,
      body: { error: { metadata: { reason: "internal" } } },
    });
  });
});

describe("whether another try is worth it", () => {
  const advice = (reason: ErrorReason, statuses: readonly number[] = []) => {
    const attempts = statuses.map((providerStatus) => ({
      providerName: "Acme",
      endpointId: "e",
      providerStatus,
      reason,
    }));
    const error = new DomainError(reason, secret, { attempts });
    return toErrorAnswer(error, "images", creditsUrl).headers["x-should-retry"];
  };

  test.for([
    ["a refusal for policy", ErrorReason.CONTENT_POLICY, [400], "false"],
    ["the provider's own word that the request is wrong", ErrorReason.PROVIDER_FAILED, [400, 422], "false"],
    ["one provider's word, while another one failed", ErrorReason.PROVIDER_FAILED, [500, 400], undefined],
    ["a provider that failed", ErrorReason.PROVIDER_FAILED, [500], undefined],
    ["a broken connection", ErrorReason.PROVIDER_FAILED, [0], undefined],
    ["credentials that a provider refuses", ErrorReason.PROVIDER_CREDENTIALS, [401], "false"],
    ["a conflict", ErrorReason.COUNT_LIMIT_REACHED, [], "false"],
    ["no credit", ErrorReason.CREDITS_EXHAUSTED, [], "false"],
    ["an overload", ErrorReason.PROVIDER_OVERLOADED, [429], "true"],
    ["a rate limit", ErrorReason.RATE_LIMITED, [], "true"],
    ["a deadline", ErrorReason.TIMED_OUT, [0], "true"],
    ["a fault of our own", ErrorReason.INTERNAL, [], undefined],
  ] as const)("is told for %s", ([, reason, statuses, expected]) => {
    expect(advice(reason, statuses)).toBe(expected);
  });

  test("is never told to be so for what the caller has to change", () => {
    const told = reasons.map((reason) =>
      toErrorAnswer(new DomainError(reason, secret), "management", creditsUrl),
    );
    const client = told.filter(({ status }) => status < 500);
    expect(client.length).toBeGreaterThan(10);
    for (const { headers } of client) expect(headers["x-should-retry"]).toBe("false");
  });

  test("comes with the time to wait also after a deadline", () => {
    const error = new DomainError(ErrorReason.TIMED_OUT, secret, { retryAfterMs: 1500 });
    expect(toErrorAnswer(error, "images", creditsUrl).headers).toMatchObject({
      "x-should-retry": "true",
      "retry-after": "2",
    });
  });
});
