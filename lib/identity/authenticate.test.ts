import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, expect, test } from "vitest";
import { type Principal, PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { generateApiKey, hashApiKey } from "./api-key.ts";
import { createKeyAuthenticator, type KeyLookUp, keyRefusal } from "./authenticate.ts";

const key = generateApiKey();
let clock: ManualClock;
let asked: string[];
let answer: (keyHash: string) => Promise<Principal>;

beforeEach(() => {
  clock = new ManualClock();
  asked = [];
  answer = async (keyHash) => create(PrincipalSchema, { keyHash });
});

const lookUp: KeyLookUp = (keyHash) => {
  asked.push(keyHash);
  return answer(keyHash);
};

function refuse(reason: Parameters<typeof keyRefusal>[0]) {
  answer = async () => {
    throw keyRefusal(reason, "no");
  };
}

test("a key is looked up by its hash, and again after 5 s from when it was asked for", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock });
  answer = async (keyHash) => {
    clock.advance(1000);
    return create(PrincipalSchema, { keyHash });
  };
  expect((await authenticate(key)).keyHash).toBe(hashApiKey(key));
  clock.advance(3999);
  await authenticate(key);
  expect(asked).toEqual([hashApiKey(key)]);
  clock.advance(1);
  await authenticate(key);
  expect(asked).toHaveLength(2);
});

test("a key that is disabled works no longer than it is remembered", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock });
  await authenticate(key);
  refuse(ErrorReason.KEY_DISABLED);
  clock.advance(5000);
  await expect(authenticate(key)).rejects.toMatchObject({ reason: ErrorReason.KEY_DISABLED });
});

test("a key expires while it is remembered", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock });
  const expiresAt = timestampFromMs(clock.nowMs() + 1000);
  answer = async (keyHash) => create(PrincipalSchema, { keyHash, expiresAt });
  await authenticate(key);
  clock.advance(999);
  await authenticate(key);
  clock.advance(1);
  await expect(authenticate(key)).rejects.toMatchObject({ reason: ErrorReason.KEY_EXPIRED });
  expect(asked).toHaveLength(1);
});

test("a flood of one bad key asks once, and again after a while", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock, refusalTtlMs: 2000 });
  refuse(ErrorReason.KEY_UNKNOWN);
  for (let count = 0; count < 100; count++) {
    await expect(authenticate(key)).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
  }
  expect(asked).toHaveLength(1);
  clock.advance(2000);
  await expect(authenticate(key)).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
  expect(asked).toHaveLength(2);
});

test("bad keys do not push good ones out", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock, maxEntries: 2 });
  await authenticate(key);
  refuse(ErrorReason.KEY_UNKNOWN);
  for (let count = 0; count < 5; count++) {
    await expect(authenticate(generateApiKey())).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
  }
  await authenticate(key);
  expect(asked.filter((keyHash) => keyHash === hashApiKey(key))).toHaveLength(1);
});

test("no more keys are remembered than may be", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock, maxEntries: 2 });
  for (const other of [key, generateApiKey(), generateApiKey(), key]) await authenticate(other);
  expect(asked).toHaveLength(4);
});

test("calls with one key at the same time share one look-up", async () => {
  const authenticate = createKeyAuthenticator({ lookUp, clock });
  await Promise.all([authenticate(key), authenticate(key), authenticate(generateApiKey())]);
  expect(asked).toHaveLength(2);
});

test.for(["", "sk-", "Bearer", `pk-${"a".repeat(43)}`])("%j is refused without asking", async (text) => {
  const authenticate = createKeyAuthenticator({ lookUp, clock });
  await expect(authenticate(text)).rejects.toMatchObject({ reason: ErrorReason.KEY_UNKNOWN });
  expect(asked).toEqual([]);
});

test.for([
  ["the account service is away", new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away")],
  ["it fails", new DomainError(ErrorReason.INTERNAL, "internal error")],
  [
    "it refuses the process that asks",
    new DomainError(ErrorReason.KEY_UNKNOWN, "the token is not valid here"),
  ],
  ["something is thrown", new Error("boom")],
] as const)("when %s nobody is turned away as unknown, and it is asked again", async ([, thrown]) => {
  const authenticate = createKeyAuthenticator({ lookUp, clock });
  answer = async () => {
    throw thrown;
  };
  await expect(authenticate(key)).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  answer = async (keyHash) => create(PrincipalSchema, { keyHash });
  await expect(authenticate(key)).resolves.toMatchObject({ keyHash: hashApiKey(key) });
});

test("a look-up that never ends is given up", async () => {
  const never: KeyLookUp = (_hash, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const authenticate = createKeyAuthenticator({ lookUp: never, clock, lookUpTimeoutMs: 20 });
  await expect(authenticate(key)).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
});
