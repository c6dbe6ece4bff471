import { expect, test } from "vitest";
import { stateOf } from "./key-record.ts";

const now = Date.UTC(2030, 0, 31, 12);
const good = { disabled: false, expires_at: null, limit_remaining: null };

test.for([
  [{}, "works"],
  [{ disabled: true, limit_remaining: 0 }, "disabled"],
  [{ expires_at: "2030-01-31T12:00:00.000Z" }, "expired"],
  [{ expires_at: "2030-01-31T12:00:00.001Z" }, "works"],
  [{ limit_remaining: 0 }, "limit reached"],
  [{ limit_remaining: 1e-9 }, "works"],
] as const)("a key with %o is told as: %s", ([change, word]) => {
  expect(stateOf({ ...good, ...change }, now).word).toBe(word);
});
