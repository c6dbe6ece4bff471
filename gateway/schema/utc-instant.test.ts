import { create } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { formatInstant, formatOptionalInstant, parseUtcInstant } from "./utc-instant.ts";

describe("an instant in a request", () => {
  test.for([
    ["2027-12-31T23:59:59Z", "2027-12-31T23:59:59.000Z"],
    ["2027-12-31T23:59:59+00:00", "2027-12-31T23:59:59.000Z"],
    ["2027-12-31T23:59:59.5Z", "2027-12-31T23:59:59.500Z"],
    ["2027-12-31T23:59:59.123456789+00:00", "2027-12-31T23:59:59.123Z"],
    ["2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000Z"],
    ["1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"],
  ])("%s is %s", ([text = "", instant]) => {
    expect(new Date(parseUtcInstant(text) ?? Number.NaN).toISOString()).toBe(instant);
  });

  test.for([
    "",
    "2027-12-31",
    "2027-12-31T23:59Z",
    "2027-12-31T23:59:59",
    "2027-12-31T23:59:59+01:00",
    "2027-12-31T23:59:59-00:00",
    "2027-12-31 23:59:59Z",
    "2027-02-29T00:00:00Z",
    "2027-04-31T00:00:00Z",
    "2027-13-01T00:00:00Z",
    "2027-12-31T24:00:00Z",
    "2027-12-31T23:59:60Z",
    "2027-12-31T23:59:59.1234567891Z",
    "+12027-12-31T23:59:59Z",
    "1798761599",
  ])("%s is none", (text) => {
    expect(parseUtcInstant(text)).toBeUndefined();
  });

  test("comes back as it was shown", () => {
    const ms = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(ms, (at) => {
        expect(parseUtcInstant(formatInstant(timestampFromMs(at)))).toBe(at);
      }),
    );
  });
});

describe("an instant in an answer", () => {
  test("is shown to the millisecond", () => {
    const instant = create(TimestampSchema, { seconds: 1_896_091_200n, nanos: 7_000_000 });
    expect(formatInstant(instant)).toBe("2030-01-31T12:00:00.007Z");
    expect(formatOptionalInstant(instant)).toBe("2030-01-31T12:00:00.007Z");
  });

  test("may be unset only where that means something", () => {
    expect(formatOptionalInstant(undefined)).toBeNull();
    expect(() => formatInstant(undefined)).toThrow(DomainError);
  });
});
