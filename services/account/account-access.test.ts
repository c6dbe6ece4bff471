import type { DescMethod } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { generateApiKey, hashApiKey } from "../../lib/identity/api-key.ts";
import { issuers } from "../../lib/identity/issuer.ts";
import { readServiceKey } from "../../lib/identity/service-key.ts";
import { createTokenSigner } from "../../lib/identity/service-token.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../test/support/services/account-server.ts";

const callerServices = [KeyService, CreditService, ProviderKeyService];
const methods: readonly DescMethod[] = [
  ...callerServices,
  AccountInternalService,
  AccountAdminService,
].flatMap((service) => service.methods);
const callerMethods = callerServices.flatMap((service) => service.methods.map(nameOf));
const adminMethods = AccountAdminService.methods.map(nameOf);
/** What each process may call; written out, so that a slip in the access table shows. */
const processMethods: Readonly<Record<string, readonly string[]>> = {
  gateway: ["authenticate", "redeemConsoleLink"],
  usage: ["authenticate"],
  destination: ["authenticate", "recordDestinationAction"],
  speech: ["authenticate", "reserve", "settle", "release", "resolveProviderKey", "recordProviderTest"],
  image: ["authenticate", "reserve", "settle", "release", "resolveProviderKey", "recordProviderTest"],
  account: [],
};

let server: TestAccountServer;
let accountId: string;
let inferenceKey: string;
let managementKey: string;

beforeAll(async () => {
  server = await startTestAccountServer();
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "a", kind: 1 });
  accountId = account?.id ?? "";
  inferenceKey = (await admin.createAccountKey({ accountId, key: { name: "i" } })).secret;
  const management = { name: "m", kind: KeyKind.MANAGEMENT };
  managementKey = (await admin.createAccountKey({ accountId, key: management })).secret;
});
afterAll(() => server.close());

function nameOf({ localName }: DescMethod): string {
  return localName;
}

type Call = (request: object) => Promise<unknown> | AsyncIterable<unknown>;

/** Why a call of a method by name was refused; undefined when it was not. */
async function refusalOf(
  { parent, localName }: DescMethod,
  authorization: string | undefined,
  request: object = {},
): Promise<ErrorReason | undefined> {
  const client = server.client(parent, authorization) as unknown as Record<string, Call>;
  try {
    const answer = client[localName]?.(request);
    if (answer === undefined) throw new Error(`no method ${localName}`);
    if (Symbol.asyncIterator in answer) for await (const _ of answer);
    else await answer;
    return undefined;
  } catch (thrown) {
    return DomainError.from(thrown).reason;
  }
}

/** The methods that answer somebody, if only to say what is wrong with the request; the others refuse by `reasons`. */
async function openTo(
  authorization: string | undefined,
  ...reasons: readonly ErrorReason[]
): Promise<readonly string[]> {
  const open: string[] = [];
  for (const method of methods) {
    const reason = await refusalOf(method, authorization);
    if (reason === undefined || reason === ErrorReason.INVALID_BODY) open.push(method.localName);
    else
      expect([method.localName, reasons.includes(reason), reason]).toEqual([method.localName, true, reason]);
  }
  return open;
}

async function principalOf(key: string) {
  const gateway = server.client(AccountInternalService, await server.tokenOf("gateway"));
  const { principal } = await gateway.authenticate({ keyHash: hashApiKey(key) });
  if (principal === undefined) throw new Error("no principal");
  return principal;
}

describe("the RPCs of account", () => {
  test("are all looked at", () => {
    expect(methods.length).toBe(39);
    expect(Object.keys(processMethods).sort()).toEqual(
      issuers.filter((issuer) => issuer !== "operator").sort(),
    );
  });

  test("answer nobody who says not who they are", async () => {
    expect(await openTo(undefined, ErrorReason.KEY_MISSING)).toEqual([]);
    expect(await openTo("Basic YTpi", ErrorReason.KEY_MISSING)).toEqual([]);
    expect(await openTo(`Bearer ${generateApiKey()}`, ErrorReason.KEY_UNKNOWN)).toEqual([]);
    expect(await openTo("Bearer a.b.c", ErrorReason.KEY_UNKNOWN)).toEqual([]);
  });

  test("answer a management key for its own account, and an inference key only about itself", async () => {
    const { CALLER_NOT_ALLOWED, MANAGEMENT_KEY_REQUIRED } = ErrorReason;
    expect(await openTo(`Bearer ${managementKey}`, CALLER_NOT_ALLOWED)).toEqual(callerMethods);
    expect(await openTo(`Bearer ${inferenceKey}`, CALLER_NOT_ALLOWED, MANAGEMENT_KEY_REQUIRED)).toEqual([
      "getCurrentKey",
    ]);
  });

  test("answer operators about accounts, and nothing else", async () => {
    expect(await openTo(await server.tokenOf("operator"), ErrorReason.CALLER_NOT_ALLOWED)).toEqual(
      adminMethods,
    );
  });

  test.for(Object.entries(processMethods))("answer %s what it needs: %s", async ([issuer, allowed]) => {
    const token = await server.tokenOf(issuer as (typeof issuers)[number]);
    expect(await openTo(token, ErrorReason.CALLER_NOT_ALLOWED)).toEqual(allowed);
  });

  test("answer no token for another service", async () => {
    for (const issuer of ["gateway", "operator"] as const) {
      const token = await server.tokenOf(issuer, "speech");
      expect(await openTo(token, ErrorReason.KEY_UNKNOWN)).toEqual([]);
    }
  });

  test("answer the gateway for a key as they do the key, and no other process", async () => {
    const { CALLER_NOT_ALLOWED, MANAGEMENT_KEY_REQUIRED } = ErrorReason;
    const tokenFor = async (issuer: (typeof issuers)[number], key: string) => {
      const signer = createTokenSigner(await readServiceKey(server.keyFiles.keyFile(issuer), issuer));
      return `Bearer ${await signer.sign("account", await principalOf(key))}`;
    };
    const own = processMethods.gateway ?? [];
    const forManagement = await tokenFor("gateway", managementKey);
    expect(await openTo(forManagement, CALLER_NOT_ALLOWED)).toEqual([...callerMethods, ...own]);
    const forInference = await tokenFor("gateway", inferenceKey);
    expect(await openTo(forInference, CALLER_NOT_ALLOWED, MANAGEMENT_KEY_REQUIRED)).toEqual([
      "getCurrentKey",
      ...own,
    ]);
    const bySpeech = await tokenFor("speech", managementKey);
    expect(await openTo(bySpeech, CALLER_NOT_ALLOWED)).toEqual(processMethods.speech);
  });
});

test("whatever a caller's RPC names of another account does not exist", async () => {
  const admin = await server.admin();
  const { account } = await admin.createAccount({ name: "b", kind: 1 });
  const management = { name: "m", kind: KeyKind.MANAGEMENT };
  const other = await admin.createAccountKey({ accountId: account?.id ?? "", key: management });
  const theirs = server.client(ProviderKeyService, `Bearer ${other.secret}`);
  const { providerKey } = await theirs.createProviderKey({ providerSlug: "openai", secret: "s" });
  const names: Readonly<Record<string, string>> = {
    hash: hashApiKey(other.secret),
    id: providerKey?.id ?? "",
  };
  const looked: string[] = [];
  for (const method of callerServices.flatMap((service): readonly DescMethod[] => service.methods)) {
    const named = method.input.fields.filter(({ localName }) => localName in names);
    if (named.length === 0) continue;
    looked.push(method.localName);
    const request = Object.fromEntries(named.map(({ localName }) => [localName, names[localName]]));
    const reason = await refusalOf(method, `Bearer ${managementKey}`, request);
    expect([method.localName, reason]).toEqual([method.localName, ErrorReason.RECORD_UNKNOWN]);
  }
  expect(looked).toEqual([
    ...["getKey", "updateKey", "deleteKey", "rotateKey"],
    ...["getProviderKey", "updateProviderKey", "deleteProviderKey"],
  ]);
  expect((await theirs.listProviderKeys({})).providerKeys).toHaveLength(1);
});
