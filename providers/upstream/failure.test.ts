import { describe, expect, test } from "vitest";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { ProviderError, type ProviderErrorKind } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { errorFromAnswer, errorFromEvent, errorFromTransport } from "./failure.ts";

function answer(status: number, body: unknown, headers: Record<string, string> = {}): ProviderHttpResponse {
  async function* bytes() {
    yield Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  }
  return { status, headers, body: bytes(), cancel: () => undefined };
}

const key = "sk-secret-key";
const prompt = "The caller's own words.";

describe("an answer with an error", () => {
  test.for<[number, object, ProviderErrorKind]>([
    [204, {}, "bad_answer"],
    [302, {}, "bad_answer"],
    [400, {}, "invalid_request"],
    [400, { code: "content_policy_violation" }, "content_policy"],
    [400, { code: "moderation_blocked" }, "content_policy"],
    [400, { code: "billing_hard_limit_reached" }, "credentials"],
    [401, { code: "invalid_api_key" }, "credentials"],
    [402, {}, "credentials"],
    [403, {}, "credentials"],
    [404, { code: "model_not_found" }, "invalid_request"],
    [408, {}, "timeout"],
    [413, {}, "invalid_request"],
    [422, {}, "invalid_request"],
    [429, { code: "rate_limit_exceeded" }, "overloaded"],
    [429, { code: "insufficient_quota", type: "insufficient_quota" }, "credentials"],
    [429, { type: "insufficient_quota" }, "credentials"],
    [500, {}, "upstream"],
    [502, {}, "upstream"],
    [503, {}, "overloaded"],
    [504, {}, "timeout"],
    [524, {}, "timeout"],
    [529, {}, "overloaded"],
  ])("%i %o is %s", async ([status, error, kind]) => {
    const failure = await errorFromAnswer(answer(status, { error }), 0, []);
    expect(failure).toBeInstanceOf(ProviderError);
    expect(failure).toMatchObject({ kind, status, retryAfterMs: undefined });
  });

  test("a phrase says more than a status or a code", async () => {
    const said = answer(429, { code: "rate_limit_exceeded", error: "You have used all your credits." });
    const failure = await errorFromAnswer(said, 0, [], undefined, [[/all your credits/, "credentials"]]);
    expect(failure).toMatchObject({ kind: "credentials", status: 429 });
  });

  test("may mean by its status what a vendor's statuses mean, unless a word of its own says more", async () => {
    const meanings = new Map<string, ProviderErrorKind>([
      ["403", "content_policy"],
      ["tier_not_allowed", "credentials"],
    ]);
    const kindOf = async (body: unknown) => (await errorFromAnswer(answer(403, body), 0, [], meanings)).kind;
    expect(await kindOf("No.")).toBe("content_policy");
    expect(await kindOf({ type: "tier_not_allowed" })).toBe("credentials");
  });

  test.for<[string, unknown, string]>([
    ["OpenAI's", { error: { message: "No.", type: "t", code: "c" } }, "c/t: No."],
    ["a bare object", { message: "No.", code: 7 }, "No."],
    ["a text under error", { error: "No." }, "No."],
    ["a text under detail", { detail: "No." }, "No."],
    [
      "a list of faults, without their input",
      { detail: [{ loc: ["body", 1], msg: "No.", input: prompt }] },
      '["body",1] No.',
    ],
    [
      "a list of faults under message",
      { message: { detail: [{ loc: ["body", "speed"], msg: "No." }] }, type: "t" },
      't: ["body","speed"] No.',
    ],
    ["a fault with its type", { detail: [{ loc: ["body"], msg: "No.", type: "odd" }] }, 'odd: ["body"] No.'],
    ["a text under detail with its type", { detail: "No.", error_type: "odd" }, "odd: No."],
    ["a page", "<html>No.</html>", "<html>No.</html>"],
    ["a list", [1], "[1]"],
  ])("logs what the upstream said: %s", async ([, body, cause]) => {
    const failure = await errorFromAnswer(answer(400, body), 0, [key, prompt]);
    expect(failure.cause).toBe(cause);
    expect(failure.message).toBe("The upstream answered with status 400.");
  });

  test("logs neither the key nor the caller's text, and not too much", async () => {
    const message = `Wrong key ${key} for: ${prompt} ${"x".repeat(5_000)}`;
    const failure = await errorFromAnswer(answer(401, { error: { message } }), 0, [key, prompt, ""]);
    const cause = String(failure.cause);
    expect(cause).toMatch(/^Wrong key \[removed\] for: \[removed\] x+$/);
    expect(cause.length).toBeLessThanOrEqual(1_000);
  });

  test("carries how long to wait", async () => {
    const nowMs = Date.UTC(2026, 0, 1);
    const headers = { "retry-after": "Thu, 01 Jan 2026 00:00:09 GMT" };
    expect((await errorFromAnswer(answer(429, {}, headers), nowMs, [])).retryAfterMs).toBe(9_000);
  });

  test("reads at most 64 KiB of the body", async () => {
    let read = 0;
    async function* bytes() {
      for (; read < 1_000; read++) yield Buffer.alloc(4096, "x");
    }
    const response = { status: 500, headers: {}, body: bytes(), cancel: () => undefined };
    expect((await errorFromAnswer(response, 0, [])).kind).toBe("upstream");
    expect(read).toBeLessThanOrEqual(16);
  });
});

test.for<[object, ProviderErrorKind]>([
  [{ error: { type: "server_error" } }, "upstream"],
  [{ error: { type: "invalid_request_error" } }, "invalid_request"],
  [{ error: { code: "content_policy_violation", type: "invalid_request_error" } }, "content_policy"],
  [{ code: "rate_limit_exceeded" }, "overloaded"],
  [{ error: { type: "image_generation_user_error" } }, "invalid_request"],
  [{ error: { type: "image_generation_user_error", code: "moderation_blocked" } }, "content_policy"],
  [{ error: { type: "image_generation_server_error" } }, "upstream"],
  [{ error: {} }, "upstream"],
])("an event %o is %s", ([event, kind]) => {
  expect(errorFromEvent({ type: "error", ...event }, [])).toMatchObject({ kind, status: undefined });
});

describe("a failure of the transport", () => {
  const open = new AbortController().signal;

  test.for<[OutboundHttpError["kind"], ProviderErrorKind]>([
    ["connect", "network"],
    ["reset", "network"],
    ["aborted", "network"],
    ["timeout", "timeout"],
    ["too_large", "bad_answer"],
    ["protocol", "bad_answer"],
  ])("%s is %s", ([kind, expected]) => {
    const cause = new OutboundHttpError(kind, new Error("connect ECONNREFUSED 10.0.0.7:443"));
    const failure = errorFromTransport(cause, open);
    expect(failure).toMatchObject({ kind: expected, cause });
    expect(failure.message).not.toContain("10.0.0.7");
  });

  test("is a time-out when the signal fired, or the reason it fired with", () => {
    const aborted = new OutboundHttpError("aborted");
    expect(errorFromTransport(aborted, AbortSignal.abort()).kind).toBe("timeout");
    const reason = new ProviderError("overloaded", "Full.");
    expect(errorFromTransport(aborted, AbortSignal.abort(reason))).toBe(reason);
    expect(errorFromTransport(new OutboundHttpError("reset"), AbortSignal.abort()).kind).toBe("network");
  });

  test("passes a ProviderError on", () => {
    const failure = new ProviderError("bad_answer", "No.");
    expect(errorFromTransport(failure, open)).toBe(failure);
  });
});
