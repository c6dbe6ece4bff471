import fc from "fast-check";
import { expect, test } from "vitest";
import { usageEvent } from "../../../test/support/services/usage-events.ts";
import { disclosureMaskOf, redact, toDisclosed } from "./redact.ts";

const whole = usageEvent({
  endUser: "user",
  sessionId: "session",
  trace: { trace_id: "t" },
  keyName: "name",
  memberId: "00000000-0000-4000-8000-000000000002",
  costNanoUsd: 7n,
  listPriceNanoUsd: 9n,
});

const disclosure = fc.record({
  privacy_mode: fc.boolean(),
  tells_cost: fc.boolean(),
  tells_identity: fc.boolean(),
  tells_request_context: fc.boolean(),
});

test("what is not disclosed stands at its default, and everything else as it was", () => {
  fc.assert(
    fc.property(disclosure, (says) => {
      const { privacy_mode, tells_cost, tells_identity, tells_request_context } = says;
      const { endUser, sessionId, trace, keyName, memberId, costNanoUsd, listPriceNanoUsd, ...rest } = redact(
        whole,
        disclosureMaskOf(says),
      );
      const { cost, identity, requestContext } = toDisclosed(disclosureMaskOf(says));
      expect({ cost, identity, requestContext }).toEqual({
        cost: tells_cost,
        identity: tells_identity,
        requestContext: tells_request_context && !privacy_mode,
      });
      expect({ costNanoUsd, listPriceNanoUsd }).toEqual(
        cost ? { costNanoUsd: 7n, listPriceNanoUsd: 9n } : { costNanoUsd: 0n, listPriceNanoUsd: 0n },
      );
      expect([keyName, memberId]).toEqual(identity ? [whole.keyName, whole.memberId] : ["", ""]);
      expect(endUser).toBe(identity && !privacy_mode ? "user" : "");
      expect([sessionId, trace]).toEqual(requestContext ? ["session", { trace_id: "t" }] : ["", undefined]);
      expect(whole).toMatchObject(rest);
      expect(rest).toMatchObject({ eventId: whole.eventId, tokens: whole.tokens, keyHash: whole.keyHash });
    }),
  );
});

test("redacting again for less gives what redacting once for both gives, and takes nothing from the event", () => {
  const before = structuredClone(whole);
  fc.assert(
    fc.property(disclosure, disclosure, (first, second) => {
      const [a, b] = [disclosureMaskOf(first), disclosureMaskOf(second)];
      expect(redact(redact(whole, a), b)).toEqual(redact(whole, a & b));
    }),
  );
  expect(structuredClone(whole)).toEqual(before);
});
