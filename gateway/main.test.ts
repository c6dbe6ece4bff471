import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../gen/media/account/v1/account_internal_service_pb.ts";
import { CreditService } from "../gen/media/account/v1/credit_service_pb.ts";
import { KeyKind, KeyScope } from "../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../gen/media/account/v1/key_service_pb.ts";
import { ProviderKeyService } from "../gen/media/account/v1/provider_key_service_pb.ts";
import { DestinationService } from "../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import type { GenerateRequest } from "../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../gen/media/image/v1/image_service_pb.ts";
import { SpeechService } from "../gen/media/speech/v1/speech_service_pb.ts";
import { UsageService } from "../gen/media/usage/v1/usage_service_pb.ts";
import { generateApiKey, hashApiKey } from "../lib/identity/api-key.ts";
import { keyRefusal } from "../lib/identity/authenticate.ts";
import { principalOf } from "../lib/identity/caller.ts";
import { createIdentityInterceptor } from "../lib/identity/identity-interceptor.ts";
import type { Audience } from "../lib/identity/issuer.ts";
import { ensureKeyFiles } from "../lib/identity/key-files.ts";
import { openServiceKeySet } from "../lib/identity/service-key-set.ts";
import { createTokenVerifier } from "../lib/identity/service-token.ts";
import { serverInterceptor } from "../lib/rpc/interceptors.ts";
import { requestIdKey } from "../lib/rpc/request-context.ts";
import { type RpcServer, startRpcServer } from "../lib/rpc/server.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { type Child, startChild } from "../test/support/processes/child.ts";
import {
  imageFinished,
  imageStarted,
  postImages,
  wholeImage,
} from "../test/support/services/gateway-images.ts";
import {
  bytesFrame,
  errorOf,
  finishedFrame,
  postSpeech,
  startedFrame,
} from "../test/support/services/gateway-server.ts";

const goodKey = generateApiKey();
const managementKey = generateApiKey();
const disabledKey = generateApiKey();

let folder: string;
let services: RpcServer;
let gateway: Child;
let baseUrl: string;
/** Hashes that the account service was asked about. */
const lookUps: string[] = [];
/** For whom and under which request id the services were called. */
const calls: { keyHash: string; requestId: string }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gateway-main-"));
  const files = await ensureKeyFiles(folder);
  services = await startServices(files.jwksFile);
  const url = `http://127.0.0.1:${services.port}`;
  gateway = startChild("gateway/main.ts", {
    env: {
      HOST: "127.0.0.1",
      PORT: "0",
      ACCOUNT_URL: url,
      SPEECH_URL: url,
      IMAGE_URL: url,
      USAGE_URL: url,
      DESTINATION_URL: url,
      MAX_BODY_MIB: "3",
      SERVICE_KEY_FILE: files.keyFile("gateway"),
      DRAIN_DELAY_MS: "0",
    },
  });
  baseUrl = `http://127.0.0.1:${await gateway.listeningPort("rest")}`;
});

/** Every service that the gateway calls, on one port. */
async function startServices(jwksFile: string): Promise<RpcServer> {
  const verifyToken = createTokenVerifier(await openServiceKeySet({ path: jwksFile, log: silentLog }));
  const authenticateKey = () => Promise.reject(new Error("no caller comes with a key"));
  const optionsOf = (audience: Audience) => ({
    interceptors: [
      serverInterceptor(silentLog),
      createIdentityInterceptor({ audience, authenticateKey, verifyToken }),
    ],
  });
  return startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [AccountInternalService, SpeechService, ImageService, UsageService],
    readiness: async () => [],
    log: silentLog,
    routes(router) {
      const account = optionsOf("account");
      router.service(AccountInternalService, { authenticate }, account);
      router.service(KeyService, { listKeys: empty }, account);
      router.service(CreditService, { getCredits: empty }, account);
      router.service(ProviderKeyService, { listProviderKeys: empty }, account);
      router.service(UsageService, { listActivity: empty }, optionsOf("usage"));
      router.service(DestinationService, { listDestinations: empty }, optionsOf("destination"));
      router.service(SpeechService, { synthesize }, optionsOf("speech"));
      router.service(ImageService, { generate }, { ...optionsOf("image"), readMaxBytes: 4 << 20 });
    },
  });
}

afterAll(async () => {
  await gateway.kill();
  await services.drain({ delayMs: 0, timeoutMs: 0 });
  await rm(folder, { recursive: true });
});

async function authenticate({ keyHash }: { keyHash: string }) {
  lookUps.push(keyHash);
  if (keyHash === hashApiKey(disabledKey)) throw keyRefusal(ErrorReason.KEY_DISABLED, "disabled");
  if (keyHash === hashApiKey(managementKey)) {
    return { principal: create(PrincipalSchema, { accountId: "a", keyHash, keyKind: KeyKind.MANAGEMENT }) };
  }
  if (keyHash !== hashApiKey(goodKey)) throw keyRefusal(ErrorReason.KEY_UNKNOWN, "unknown");
  const scopes = [KeyScope.SPEECH, KeyScope.IMAGES];
  const principal = create(PrincipalSchema, { accountId: "a", keyHash, keyKind: KeyKind.INFERENCE, scopes });
  return { principal };
}

async function* synthesize(_request: unknown, context: Parameters<typeof principalOf>[0]) {
  calls.push({ keyHash: principalOf(context).keyHash, requestId: context.values.get(requestIdKey) });
  yield startedFrame();
  yield bytesFrame(Buffer.from("sound"));
  yield finishedFrame();
}

async function* generate({ inputReferences }: GenerateRequest, context: Parameters<typeof principalOf>[0]) {
  calls.push({ keyHash: principalOf(context).keyHash, requestId: context.values.get(requestIdKey) });
  yield imageStarted();
  const sizes = inputReferences.map(({ source }) => source.value?.length);
  yield* wholeImage(0, Buffer.from(sizes.join()));
  yield imageFinished();
}

function empty(_request: unknown, context: Parameters<typeof principalOf>[0]) {
  calls.push({ keyHash: principalOf(context).keyHash, requestId: context.values.get(requestIdKey) });
  return {};
}

function ask(key: string, requestId = "id-1"): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "x-request-id": requestId };
  return postSpeech({ baseUrl }, undefined, { headers });
}

describe("the gateway as a process", () => {
  test("asks account who a key speaks for, once, and speech on behalf of its owner", async () => {
    for (const requestId of ["one", "two"]) {
      const response = await ask(goodKey, requestId);
      expect(await response.text()).toBe("sound");
    }
    const keyHash = hashApiKey(goodKey);
    expect(calls).toEqual([
      { keyHash, requestId: "one" },
      { keyHash, requestId: "two" },
    ]);
    expect(lookUps).toEqual([keyHash]);
  });

  test("asks image in the same way, with bodies up to its limit", async () => {
    const bytes = Buffer.alloc(((3 << 20) / 4) * 3 - 1024);
    const image_url = { url: `data:image/png;base64,${bytes.toString("base64")}` };
    const body = { model: "acme/brush", prompt: "a", input_references: [{ type: "image_url", image_url }] };
    const headers = { authorization: `Bearer ${goodKey}`, "x-request-id": "three" };
    const response = await postImages({ baseUrl }, body, { headers });
    expect(await response.json()).toMatchObject({
      data: [{ b64_json: Buffer.from(String(bytes.length)).toString("base64") }],
    });
    expect(calls.at(-1)).toEqual({ keyHash: hashApiKey(goodKey), requestId: "three" });
  });

  test.for([
    ["/activity", { data: [] }],
    ["/keys", { data: [], total_count: 0 }],
    ["/credits", { data: { total_credits: 0, total_usage: 0, held: 0 } }],
    ["/byok", { data: [], total_count: 0 }],
    ["/observability/destinations", { data: [], total_count: 0 }],
  ] as const)("asks for %s in the same way", async ([path, body]) => {
    const headers = { authorization: `Bearer ${managementKey}`, "x-request-id": path.slice(1) };
    const response = await fetch(`${baseUrl}/api/v1${path}`, { headers });
    expect(await response.json()).toEqual(body);
    expect(calls.at(-1)).toEqual({ keyHash: hashApiKey(managementKey), requestId: path.slice(1) });
  });

  test.for([
    ["a disabled key", disabledKey, "key_disabled"],
    ["an unknown key", generateApiKey(), "key_unknown"],
    ["what is no key", "eyJh.eyJh.eyJh", "key_unknown"],
  ])("refuses %s", async ([, key = "", reason]) => {
    expect(await errorOf(await ask(key))).toEqual({ status: 401, reason });
  });

  test("writes its lines without keys", () => {
    expect(gateway.lines.join("\n")).not.toContain(goodKey);
    expect(gateway.lines.join("\n")).not.toContain(disabledKey);
  });

  test("ends with 0 when told to", async () => {
    expect(await gateway.stop()).toBe(0);
  });

  test.for([
    [{}, "SERVICE_KEY_FILE is required"],
    [{ SERVICE_KEY_FILE: "x", PORT: "many", SPEECH_URL: "nowhere" }, "PORT must be"],
    [{ SERVICE_KEY_FILE: "/nowhere/key.jwk", TLS_CERT_FILE: "x" }, "TLS_KEY_FILE must be set together"],
    [{ SERVICE_KEY_FILE: "/nowhere/key.jwk" }, "/nowhere/key.jwk"],
  ] as const)("does not start with %j and says why in one line", async ([env, line]) => {
    const child = startChild("gateway/main.ts", { env });
    expect(await child.exited).toBe(1);
    expect(child.lines).toHaveLength(1);
    expect(child.lines[0]).toContain(line);
  });
});
