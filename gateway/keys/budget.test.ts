import { expect, test } from "vitest";
import { LimitReset } from "../../gen/media/account/v1/key_pb.ts";
import { accountKey } from "../../test/fakes/fake-account.ts";
import { toKeyBudget } from "./budget.ts";

const { UNSPECIFIED, DAILY, WEEKLY, MONTHLY } = LimitReset;

test.for([
  [UNSPECIFIED, "2030-01-31T12:00:00Z", null, null, 4e-9],
  [DAILY, "2030-01-31T12:00:00Z", "daily", "2030-02-01T00:00:00.000Z", 1e-9],
  [WEEKLY, "2030-01-31T12:00:00Z", "weekly", "2030-02-04T00:00:00.000Z", 2e-9],
  [WEEKLY, "2030-02-03T23:59:59Z", "weekly", "2030-02-04T00:00:00.000Z", 2e-9],
  [WEEKLY, "2030-02-04T00:00:00Z", "weekly", "2030-02-11T00:00:00.000Z", 2e-9],
  [MONTHLY, "2030-12-31T23:59:59Z", "monthly", "2031-01-01T00:00:00.000Z", 3e-9],
] as const)("a limit of period %s at %s", ([limitReset, now, interval, resetsAt, spent]) => {
  const key = accountKey({ limitReset, limitNanoUsd: 2_000_000_000n, includeByokInLimit: false });
  expect(toKeyBudget(key, Date.parse(now))).toEqual({
    scope: "key_limit",
    limit_usd: 2,
    spend_usd: spent,
    remaining_usd: Number((2 - spent).toFixed(9)),
    reset_interval: interval,
    resets_at: resetsAt,
    include_byok: false,
    budget_id: null,
    guardrail_id: null,
  });
});

test("what own provider keys served counts where it counts against the limit", () => {
  const key = accountKey({ limitReset: DAILY, limitNanoUsd: 1_000_000_000n, includeByokInLimit: true });
  expect(toKeyBudget(key, 0)).toMatchObject({ spend_usd: 1.500000001, remaining_usd: -0.500000001 });
});

test("a key without a limit has no budget", () => {
  expect(toKeyBudget(accountKey({ limitNanoUsd: undefined }), 0)).toBeUndefined();
});
