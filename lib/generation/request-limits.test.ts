import { create, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ProviderPreferencesSchema } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { attributionIssues, preferenceIssues } from "./request-limits.ts";

const kib = 1024;
const nul = "\u0000";

/** An object whose JSON has so many bytes. */
const jsonOfBytes = (bytes: number): JsonObject => ({
  a: "x".repeat(bytes - JSON.stringify({ a: "" }).length),
});

function faultyPaths(fields: { user?: string; sessionId?: string; trace?: JsonObject }) {
  return attributionIssues({ user: "", sessionId: "", ...fields }).map(({ path }) => path);
}

describe("user, session and trace", () => {
  test.for<[string, Parameters<typeof faultyPaths>[0]]>([
    ["256 code points each", { user: "😀".repeat(256), sessionId: "é".repeat(256) }],
    ["16 KiB of trace", { trace: jsonOfBytes(16 * kib) }],
    ["1,024 values of trace", { trace: { a: Array(1021).fill(1), b: { c: 1 } } }],
    ["an empty trace", { trace: {} }],
    ["control characters other than U+0000", { user: "a\u0001\n", trace: { a: "\u0001" } }],
    ["what only looks like U+0000 in JSON", { user: "\\u0000", trace: { "\\u0000": "\\\\u0000" } }],
    ["numbers, nulls and lists", { trace: { a: [1, null, true, { b: [] }] } }],
  ])("may have %s", ([, fields]) => {
    expect(faultyPaths(fields)).toEqual([]);
  });

  test.for<[string, Parameters<typeof faultyPaths>[0], readonly string[]]>([
    ["257 characters", { user: "u".repeat(257), sessionId: "s".repeat(257) }, ["user", "session_id"]],
    ["more than 16 KiB", { trace: jsonOfBytes(16 * kib + 1) }, ["trace"]],
    ["1,025 values in a list", { trace: { a: Array(1024).fill(1) } }, ["trace"]],
    ["1,025 values at all levels", { trace: { a: Array(512).fill({ b: 1 }) } }, ["trace"]],
    ["U+0000 in the user", { user: `a${nul}` }, ["user"]],
    ["U+0000 in the session", { sessionId: nul }, ["session_id"]],
    ["U+0000 in a value", { trace: { span: nul } }, ["trace"]],
    ["U+0000 in a name", { trace: { [`a${nul}b`]: 1 } }, ["trace"]],
    ["U+0000 deep down", { trace: { a: [{ b: { c: [1, `${nul}x`] } }] } }, ["trace"]],
    ["both faults of a text", { user: `${nul}${"u".repeat(300)}` }, ["user", "user"]],
  ])("are refused with %s", ([, fields, paths]) => {
    expect(faultyPaths(fields)).toEqual(paths);
  });
});

describe("preferences", () => {
  const faults = (fields: Parameters<typeof create<typeof ProviderPreferencesSchema>>[1]) =>
    preferenceIssues(create(ProviderPreferencesSchema, fields)).map(({ path }) => path);
  const slugs = (count: number) => Array.from({ length: count }, (_, index) => `provider-${index}`);

  test("may be left out, and may be as large as stated", () => {
    expect(preferenceIssues(undefined)).toEqual([]);
    const options = { acme: jsonOfBytes(64 * kib - '{"acme":}'.length) };
    expect(faults({ order: slugs(32), only: slugs(32), ignore: slugs(32), options })).toEqual([]);
  });

  test("are refused beyond that", () => {
    const options = { acme: jsonOfBytes(64 * kib) };
    expect(faults({ order: slugs(33), only: slugs(33), ignore: slugs(33), options })).toEqual([
      "provider.order",
      "provider.only",
      "provider.ignore",
      "provider.options",
    ]);
  });
});
