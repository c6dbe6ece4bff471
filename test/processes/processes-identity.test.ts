import { toBinary } from "@bufbuild/protobuf";
import { SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Principal, PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { generateApiKey, hashApiKey } from "../../lib/identity/api-key.ts";
import type { Audience, Issuer } from "../../lib/identity/issuer.ts";
import {
  generateServiceKeys,
  importServiceKey,
  readServiceKey,
  type ServiceKey,
} from "../../lib/identity/service-key.ts";
import { createTokenSigner } from "../../lib/identity/service-token.ts";
import { createRpcClient } from "../../lib/rpc/client.ts";
import { systemClock } from "../../lib/runtime/clock.ts";
import {
  describeError,
  type SpeechFlow,
  speak,
  speakDirectly,
  startSpeechFlow,
  tokenPattern,
} from "../support/processes/speech-flow.ts";
import { errorOf } from "../support/services/gateway-server.ts";
import { stockTransport, transportNames } from "../support/services/speech-server.ts";

const audioBytes = 8192;
const tokenLifetimeMs = 120_000;

let flow: SpeechFlow;
/** Whom the stack's inference key speaks for. */
let principal: Principal;

beforeAll(async () => {
  flow = await startSpeechFlow({ upstream: { otherwise: { kind: "audio", totalBytes: audioBytes } } });
  principal = await principalOf(flow.stack.inferenceKey);
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
});

describe("a direct call of speech", () => {
  test.for(transportNames)("works with an API key over %s", async (name) => {
    const { stack } = flow;
    const transport = stockTransport(name, stack.urls.speech);
    const answer = await speakDirectly(stack, "Directly.", `Bearer ${stack.inferenceKey}`, { transport });
    expect(answer).toMatchObject({ audioBytes, whole: true });
  });

  test("works with a token of the gateway that acts for a key", async () => {
    const token = await tokenOf("gateway", "speech", principal);
    expect(await speakDirectly(flow.stack, "For a key.", `Bearer ${token}`)).toMatchObject({
      audioBytes,
      whole: true,
    });
  });

  test.for([
    ["no credentials", async () => undefined, ErrorReason.KEY_MISSING],
    ["an unknown key", async () => generateApiKey(), ErrorReason.KEY_UNKNOWN],
    ["a management key", async () => flow.stack.managementKey, ErrorReason.INFERENCE_KEY_REQUIRED],
    [
      "a token of the gateway that acts for a management key",
      async () => tokenOf("gateway", "speech", await principalOf(flow.stack.managementKey)),
      ErrorReason.INFERENCE_KEY_REQUIRED,
    ],
    ["a token of the gateway for no one", () => tokenOf("gateway", "speech"), ErrorReason.CALLER_NOT_ALLOWED],
    [
      "a token of another process that acts for a key",
      () => tokenOf("account", "speech", principal),
      ErrorReason.CALLER_NOT_ALLOWED,
    ],
    [
      "a token of speech itself that acts for a key",
      () => tokenOf("speech", "speech", principal),
      ErrorReason.CALLER_NOT_ALLOWED,
    ],
    ["a token for another service", () => tokenOf("gateway", "account", principal), ErrorReason.KEY_UNKNOWN],
    [
      "a token that has expired",
      async () => createTokenSigner(await keyOf("gateway"), "", longAgo).sign("speech", principal),
      ErrorReason.KEY_EXPIRED,
    ],
    ["a key of nobody under the name of the gateway", () => forgedByStranger(), ErrorReason.KEY_UNKNOWN],
    ["another process's key under the issuer gateway", () => forgedByProcess(), ErrorReason.KEY_UNKNOWN],
    ["a token whose principal was changed", () => tampered(), ErrorReason.KEY_UNKNOWN],
    ["a token without a signature", async () => unsigned(), ErrorReason.KEY_UNKNOWN],
  ] as const satisfies [string, () => Promise<string | undefined>, ErrorReason][])(
    "is refused with %s",
    async ([, credential, reason]) => {
      const before = flow.upstream.requests.length;
      const given = await credential();
      const call = speakDirectly(flow.stack, "Refused.", given === undefined ? given : `Bearer ${given}`);
      await expect(call).rejects.toMatchObject({ reason });
      expect(flow.upstream.requests).toHaveLength(before);
    },
  );
});

describe("the account service's RPCs for processes", () => {
  test.for([
    ["an API key", async () => flow.stack.inferenceKey],
    ["a management key", async () => flow.stack.managementKey],
    ["a token for another service", () => tokenOf("gateway", "speech")],
    ["an operator's token", async () => createTokenSigner(await keyOf("operator"), "ada").sign("account")],
  ] as const satisfies [string, () => Promise<string>][])("are closed to %s", async ([, credential]) => {
    const call = lookUp(flow.stack.inferenceKey, await credential());
    await expect(call).rejects.toSatisfy(({ reason }: { reason: ErrorReason }) =>
      [ErrorReason.CALLER_NOT_ALLOWED, ErrorReason.KEY_UNKNOWN].some((refusal) => refusal === reason),
    );
  });
});

test("the REST interface takes no service token", async () => {
  for (const token of [
    await tokenOf("gateway", "speech", principal),
    await tokenOf("gateway", "account"),
    await createTokenSigner(await keyOf("operator"), "ada").sign("account"),
  ]) {
    const answer = await speak(flow.stack, "With a token.", { key: token });
    expect(await errorOf(answer)).toEqual({ status: 401, reason: "key_unknown" });
  }
});

test("neither callers nor the upstream ever get a service token or another's key", async () => {
  const { stack, upstream } = flow;
  const seen: string[] = [];
  for (const input of ["Whole.", "[[status=500]]", "[[cut=4096]]"]) {
    const answer = await speak(stack, input);
    seen.push(JSON.stringify([...answer.headers]), await answer.text().catch(String));
    for (const name of transportNames) {
      const transport = stockTransport(name, stack.urls.speech);
      const authorization = `Bearer ${stack.inferenceKey}`;
      const direct = await speakDirectly(stack, input, authorization, { transport }).catch(describeError);
      seen.push(JSON.stringify(direct));
    }
  }
  for (const request of upstream.requests) {
    expect(request.headers.authorization).toBe("Bearer test-key");
    seen.push(JSON.stringify([request.headers, request.text]));
  }
  expect(seen.length).toBeGreaterThan(3 * (transportNames.length + 1));
  for (const text of seen) {
    expect(text).not.toMatch(tokenPattern);
    expect(text).not.toContain(stack.inferenceKey);
  }
  expect(await tokenOf("gateway", "speech", principal)).toMatch(tokenPattern);
});

const longAgo = { ...systemClock, nowMs: () => systemClock.nowMs() - 2 * tokenLifetimeMs };

async function principalOf(apiKey: string): Promise<Principal> {
  const { principal } = await lookUp(apiKey, await tokenOf("gateway", "account"));
  if (principal === undefined) throw new Error("an answer without a principal");
  return principal;
}

function lookUp(apiKey: string, credential: string) {
  const transport = stockTransport("Connect over HTTP/1.1", flow.stack.urls.account);
  return createRpcClient(AccountInternalService, transport).authenticate(
    { keyHash: hashApiKey(apiKey) },
    { headers: { authorization: `Bearer ${credential}` } },
  );
}

function keyOf(issuer: Issuer): Promise<ServiceKey> {
  return readServiceKey(flow.stack.keyFiles.keyFile(issuer), issuer);
}

async function tokenOf(issuer: Issuer, audience: Audience, actsFor?: Principal): Promise<string> {
  return createTokenSigner(await keyOf(issuer)).sign(audience, actsFor);
}

async function forgedByStranger(): Promise<string> {
  const { privateKeys } = await generateServiceKeys(["gateway"]);
  const [stranger] = privateKeys;
  if (stranger === undefined) throw new Error("no key was made");
  const { keyId } = await keyOf("gateway");
  return createTokenSigner({ ...(await importServiceKey(stranger)), keyId }).sign("speech", principal);
}

async function forgedByProcess(): Promise<string> {
  const { keyId, privateKey } = await keyOf("account");
  return new SignJWT(claims())
    .setProtectedHeader({ alg: "EdDSA", kid: keyId })
    .setIssuer("gateway")
    .setAudience("speech")
    .setIssuedAt()
    .setExpirationTime("60s")
    .sign(privateKey);
}

async function tampered(): Promise<string> {
  const [header, payload = "", signature] = (await tokenOf("gateway", "speech")).split(".");
  const changed = { ...JSON.parse(Buffer.from(payload, "base64url").toString()), ...claims() };
  return [header, Buffer.from(JSON.stringify(changed)).toString("base64url"), signature].join(".");
}

function unsigned(): string {
  return new UnsecuredJWT(claims())
    .setIssuer("gateway")
    .setAudience("speech")
    .setIssuedAt()
    .setExpirationTime("60s")
    .encode();
}

function claims() {
  return { principal: Buffer.from(toBinary(PrincipalSchema, principal)).toString("base64url") };
}
