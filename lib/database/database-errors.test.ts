import { ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { isDatabaseAway, isDataFault, translateDatabaseErrors } from "./database-errors.ts";

const withCode = (code: unknown) => Object.assign(new Error("failed"), { code });

test.for([
  ["ECONNREFUSED", "away"],
  ["08006", "away"],
  ["53300", "away"],
  ["57P01", "away"],
  ["57014", "away"],
  ["25P03", "away"],
  ["55P03", "away"],
  ["40P01", "away"],
  ["22003", "fault"],
  ["22021", "fault"],
  ["23505", "fault"],
  ["42P01", "neither"],
  ["XX000", "neither"],
  [14, "neither"],
] as const)("%s is %s", ([code, kind]) => {
  expect([isDatabaseAway(withCode(code)), isDataFault(withCode(code))]).toEqual([
    kind === "away",
    kind === "fault",
  ]);
});

test("the driver's own failures have no code", () => {
  expect(isDatabaseAway(new Error("timeout exceeded when trying to connect"))).toBe(true);
  expect(isDatabaseAway(new Error("Connection terminated unexpectedly"))).toBe(true);
  expect([isDatabaseAway("08006"), isDataFault("22003"), isDataFault(undefined)]).toEqual([
    false,
    false,
    false,
  ]);
});

test("a handler whose database is away says so; other failures stay what they are", async () => {
  const call = (thrown: unknown) =>
    translateDatabaseErrors(() => Promise.reject(thrown))({} as never).catch((error: unknown) => error);
  expect(await call(withCode("08006"))).toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  for (const other of [
    withCode("22003"),
    new DomainError(ErrorReason.INTERNAL, "Connection terminated"),
    new ConnectError("no"),
  ]) {
    expect(await call(other)).toBe(other);
  }
});
