import { expect, test } from "vitest";
import { parseRetryAfterMs } from "./retry-after.ts";

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5);

test.for<[Record<string, string>, number | undefined]>([
  [{}, undefined],
  [{ "retry-after": "3" }, 3000],
  [{ "retry-after": "0" }, 0],
  [{ "retry-after": "1.5" }, 1500],
  [{ "retry-after": "Fri, 02 Jan 2026 03:04:35 GMT" }, 30_000],
  [{ "retry-after": "Fri, 02 Jan 2026 03:04:00 GMT" }, 0],
  [{ "retry-after": "7", "retry-after-ms": "250.2" }, 251],
  [{ "retry-after": "7", "retry-after-ms": "soon" }, 7000],
  [{ "retry-after": "-5" }, undefined],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "1e400" }, undefined],
])("%o asks to wait %s ms", ([headers, expected]) => {
  expect(parseRetryAfterMs(headers, nowMs)).toBe(expected);
});
