import {
  create,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  type DescService,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createContextValues, type Transport } from "@connectrpc/connect";
import { importJWK, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { type Principal, PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../../gen/media/account/v1/provider_key_service_pb.ts";
import { DestinationAdminService } from "../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ImageAdminService } from "../../gen/media/image/v1/image_admin_service_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { SpeechAdminService } from "../../gen/media/speech/v1/speech_admin_service_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { UsageAdminService } from "../../gen/media/usage/v1/usage_admin_service_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { createLocalTransport, createRemoteTransport } from "../rpc/client.ts";
import { serverInterceptor } from "../rpc/interceptors.ts";
import type { RegisterRoutes } from "../rpc/registered-method.ts";
import { requestLogKey } from "../rpc/request-context.ts";
import { type RpcServer, startRpcServer } from "../rpc/server.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { createLog } from "../runtime/log.ts";
import { accessTable } from "./access.ts";
import { generateApiKey } from "./api-key.ts";
import { actingForKey, type Caller, callerKey, principalOf } from "./caller.ts";
import { bearerCredential, createIdentityInterceptor } from "./identity-interceptor.ts";
import type { Issuer } from "./issuer.ts";
import {
  generateServiceKeys,
  importServiceKey,
  type PrivateServiceJwk,
  type ServiceKey,
} from "./service-key.ts";
import { createTokenSigner, createTokenVerifier } from "./service-token.ts";
import { createTokenInterceptor } from "./token-interceptor.ts";

const services: readonly DescService[] = [
  SpeechService,
  SpeechAdminService,
  ImageService,
  ImageAdminService,
  KeyService,
  CreditService,
  ProviderKeyService,
  AccountInternalService,
  AccountAdminService,
  UsageService,
  UsageAdminService,
  DestinationService,
  DestinationAdminService,
];
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);

const principals = {
  speech: { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] },
  images: { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.IMAGES] },
  management: { keyKind: KeyKind.MANAGEMENT, scopes: [] },
} as const;
type PrincipalName = keyof typeof principals;
const accountId = "5f0f5c3e-6a0c-4b7c-9d4e-000000000001";

function principalNamed(name: PrincipalName): Principal {
  const { keyKind, scopes } = principals[name];
  return create(PrincipalSchema, { accountId, keyHash: "ab".repeat(32), keyKind, scopes: [...scopes] });
}

const apiKeys = { speech: generateApiKey(), images: generateApiKey(), management: generateApiKey() };
const serviceKeys = new Map<Issuer, ServiceKey>();
const logLines: string[] = [];
const callers: Caller[] = [];
let server: RpcServer;
let transport: Transport;
let routes: RegisterRoutes;

beforeAll(async () => {
  const { privateKeys } = await generateServiceKeys(["gateway", "speech", "image", "usage", "operator"]);
  for (const jwk of privateKeys) serviceKeys.set(jwk.iss, await importServiceKey(jwk));
  const found = new Map(await Promise.all(privateKeys.map(publicKeyOf)));
  const verifyToken = createTokenVerifier({ version: 1, find: async (kid) => found.get(kid), touch() {} });
  const log = createLog({
    name: "test",
    level: "info",
    destination: { write: (line) => logLines.push(line) },
  });
  const identity = createIdentityInterceptor({
    audience: "account",
    verifyToken,
    async authenticateKey(key) {
      const name = (Object.keys(apiKeys) as PrincipalName[]).find((candidate) => apiKeys[candidate] === key);
      if (name === undefined) throw new DomainError(ErrorReason.KEY_UNKNOWN, "the key is not known");
      return principalNamed(name);
    },
  });
  const interceptors = [serverInterceptor(log), identity];
  routes = (router) => {
    for (const service of services) {
      if (service !== CreditService) router.service(service, {}, { interceptors });
    }
    const handlers = {
      async getCredits(_request: unknown, context: Parameters<typeof principalOf>[0]) {
        callers.push(context.values.get(callerKey));
        context.values.get(requestLogKey).info("handled");
        principalOf(context);
        return {};
      },
    };
    router.service(CreditService, handlers, { interceptors });
  };
  server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services,
    routes,
    readiness: async () => [],
    log,
  });
  transport = createRemoteTransport({ baseUrl: `http://127.0.0.1:${server.port}` });
});

afterAll(() => server.drain({ delayMs: 0, timeoutMs: 1000 }));

async function publicKeyOf(jwk: PrivateServiceJwk) {
  const { kty = "", crv = "", x = "", iss, kid } = jwk;
  const publicKey = (await importJWK({ kty, crv, x }, "EdDSA")) as ServiceKey["privateKey"];
  return [kid, { issuer: iss, publicKey }] as const;
}

async function tokenOf(issuer: Issuer, principal?: Principal): Promise<string> {
  return createTokenSigner(keyOf(issuer), issuer === "operator" ? "ada" : "").sign("account", principal);
}

function keyOf(issuer: Issuer): ServiceKey {
  const key = serviceKeys.get(issuer);
  if (key === undefined) throw new Error(`no key of ${issuer}`);
  return key;
}

/** What a call comes to: `let in` when only its handler is not there, else the refusal's reason. */
async function outcome(
  method: DescMethod,
  authorization: string | undefined,
): Promise<"let in" | ErrorReason> {
  const headers = authorization === undefined ? {} : { authorization };
  try {
    if (method.methodKind === "unary") {
      await transport.unary(method as DescMethodUnary, undefined, undefined, headers, {});
    } else {
      const streaming = method as DescMethodStreaming;
      const answer = await transport.stream(streaming, undefined, undefined, headers, oneMessage());
      for await (const _message of answer.message);
    }
    return "let in";
  } catch (thrown) {
    const { reason, cause } = DomainError.from(thrown);
    return cause instanceof ConnectError && cause.code === Code.Unimplemented ? "let in" : reason;
  }
}

async function* oneMessage() {
  yield {};
}

describe("over a socket", () => {
  test("no RPC answers a call without credentials", async () => {
    expect(services.map(({ typeName }) => typeName).sort()).toEqual([...accessTable.keys()].sort());
    for (const method of methods) {
      for (const authorization of [undefined, "", "Bearer", "Bearer ", "Basic c2stYTpi"]) {
        expect(await outcome(method, authorization), method.toString()).toBe(ErrorReason.KEY_MISSING);
      }
    }
  });

  test("no RPC answers an unknown key or a bad token", async () => {
    const expired = await new SignJWT({})
      .setProtectedHeader({ alg: "EdDSA", kid: keyOf("gateway").keyId })
      .setIssuer("gateway")
      .setAudience("account")
      .setIssuedAt(1_000_000)
      .setExpirationTime(1_000_060)
      .sign(keyOf("gateway").privateKey);
    const elsewhere = await createTokenSigner(keyOf("gateway")).sign("speech", principalNamed("management"));
    const borrowed = { ...keyOf("speech"), issuer: "gateway" as const };
    const forged = await createTokenSigner(borrowed).sign("account", principalNamed("management"));
    for (const method of methods) {
      expect(await outcome(method, `Bearer ${expired}`)).toBe(ErrorReason.KEY_EXPIRED);
      for (const credential of [generateApiKey(), "sk-x", "x", "a.b.c", "a.b.c.d", elsewhere, forged]) {
        expect(await outcome(method, `Bearer ${credential}`)).toBe(ErrorReason.KEY_UNKNOWN);
      }
    }
  });

  const expected: Record<string, (service: string, method: string) => "let in" | ErrorReason> = {};
  for (const name of Object.keys(principals) as PrincipalName[]) {
    expected[name] = (service, method) => {
      const rule = accessTable.get(service)?.get(method);
      if (rule?.open !== "callers") return ErrorReason.CALLER_NOT_ALLOWED;
      if (rule.key === "inference" && name === "management") return ErrorReason.INFERENCE_KEY_REQUIRED;
      if (rule.key === "management" && name !== "management") return ErrorReason.MANAGEMENT_KEY_REQUIRED;
      const scopes: readonly KeyScope[] = principals[name].scopes;
      return rule.scope !== undefined && !scopes.includes(rule.scope) ? ErrorReason.SCOPE_MISSING : "let in";
    };
  }

  test.for(Object.keys(principals) as PrincipalName[])(
    "a %s key, alone or through the gateway, is let in where the table says and nowhere else",
    async (name) => {
      const viaGateway = await tokenOf("gateway", principalNamed(name));
      const viaSpeech = await tokenOf("speech", principalNamed(name));
      for (const method of methods) {
        const { typeName } = method.parent;
        const wanted = expected[name]?.(typeName, method.localName);
        expect(await outcome(method, `Bearer ${apiKeys[name]}`), method.toString()).toBe(wanted);
        const internal = accessTable.get(typeName)?.get(method.localName)?.open === "processes";
        if (internal) continue;
        expect(await outcome(method, `bearer ${viaGateway}`), method.toString()).toBe(wanted);
        expect(await outcome(method, `Bearer ${viaSpeech}`), method.toString()).toBe(
          ErrorReason.CALLER_NOT_ALLOWED,
        );
      }
    },
  );

  test.for(["gateway", "speech", "image", "usage", "operator"] as const)(
    "the token of %s is let in where the table names it and nowhere else",
    async (issuer) => {
      const token = await tokenOf(issuer);
      for (const method of methods) {
        const rule = accessTable.get(method.parent.typeName)?.get(method.localName);
        const isNamed =
          issuer === "operator" && rule?.open === "operators"
            ? true
            : rule?.open !== "operators" && (rule?.issuers ?? []).includes(issuer);
        expect(await outcome(method, `Bearer ${token}`), method.toString()).toBe(
          isNamed ? "let in" : ErrorReason.CALLER_NOT_ALLOWED,
        );
      }
    },
  );

  test("an operator who looks at an account is let in to what its keys may read, and to nothing else of theirs", async () => {
    const token = await tokenOf("operator", principalNamed("management"));
    for (const method of methods) {
      const { typeName } = method.parent;
      const rule = accessTable.get(typeName)?.get(method.localName);
      const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      const wanted =
        rule?.open === "operators" || (rule?.open === "callers" && isRead && rule.key !== "inference");
      expect(await outcome(method, `Bearer ${token}`), method.toString()).toBe(
        wanted ? "let in" : ErrorReason.CALLER_NOT_ALLOWED,
      );
    }
  });

  test("health and reflection are open", async () => {
    const health = await fetch(`http://127.0.0.1:${server.port}/grpc.health.v1.Health/Check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await health.json()).toEqual({ status: "SERVING" });
  });
});

test("a process's calls carry its token, on behalf of whom it acts for, and handlers and logs see them", async () => {
  const token = createTokenInterceptor({ signer: createTokenSigner(keyOf("gateway")), audience: "account" });
  const local = createLocalTransport(routes, { interceptors: [token] });
  const principal = principalNamed("management");
  const contextValues = createContextValues().set(actingForKey, principal);
  callers.length = 0;
  logLines.length = 0;
  const { getCredits } = CreditService.method;
  await local.unary(getCredits, undefined, undefined, {}, {}, contextValues);
  expect(callers).toEqual([{ kind: "process", issuer: "gateway", principal }]);
  expect(JSON.parse(logLines[0] ?? "")).toMatchObject({
    account_id: accountId,
    key_hash: "abababababab",
    issuer: "gateway",
  });
  const alone = await local.unary(getCredits, undefined, undefined, {}, {}).catch(DomainError.from);
  expect(alone).toMatchObject({ reason: ErrorReason.CALLER_NOT_ALLOWED });
});

test.for([
  [null, undefined],
  ["Bearer sk-a", "sk-a"],
  ["bearer   sk-a ", "sk-a"],
  ["Bearer sk-a b", undefined],
  ["Bearersk-a", undefined],
  ["Token sk-a", undefined],
] as const)("the credential of %j is %j", ([header, credential]) => {
  expect(bearerCredential(header)).toBe(credential);
});
