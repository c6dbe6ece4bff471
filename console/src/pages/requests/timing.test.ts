import { expect, test } from "vitest";
import { stretchesOf } from "./timing.ts";

const attempt = {
  endpoint_id: "e",
  provider_name: "Acme",
  status: null,
  first_byte_latency: null,
  is_byok: false,
  reason: null,
};
const request = { created_at: "2030-01-31T12:00:00.000Z", first_byte_latency: null };

test("attempts stand where they were along the request, and none beyond its end", () => {
  const provider_responses = [
    { ...attempt, created_at: "2030-01-31T12:00:00.100Z", latency: 200, outcome: "failed" },
    { ...attempt, created_at: null, latency: 5_000, outcome: "succeeded" },
  ] as const;
  expect(stretchesOf({ ...request, latency: 1_000, provider_responses: [...provider_responses] })).toEqual([
    { startPercent: 10, widthPercent: 20, isGood: false, label: "1. Acme" },
    { startPercent: 30, widthPercent: 70, isGood: true, label: "2. Acme" },
  ]);
});

test("of a request that was lost nobody knows how long it took", () => {
  expect(stretchesOf({ ...request, latency: null, provider_responses: [] })).toBe(undefined);
});
