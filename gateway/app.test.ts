import type { HandlerContext } from "@connectrpc/connect";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { AudioFormat, type SynthesizeRequest } from "../gen/media/speech/v1/speech_pb.ts";
import { generateApiKey } from "../lib/identity/api-key.ts";
import { actingForKey } from "../lib/identity/caller.ts";
import { createLocalTransport } from "../lib/rpc/client.ts";
import { requestIdKey } from "../lib/rpc/request-context.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import {
  bytesFrame,
  errorOf,
  finishedFrame,
  type GatewayServer,
  postSpeech,
  speechPath,
  startedFrame,
  startGatewayServer,
  testKeys,
} from "../test/support/services/gateway-server.ts";
import { speechRoutes } from "../test/support/services/speech-server.ts";
import { waitUntil } from "../test/support/wait-until.ts";

const audio = Uint8Array.from({ length: 1000 }, (_, index) => index % 251);
const least = { input: "Hello.", model: "acme/one" };

let gateway: GatewayServer;
/** What the stand-in does instead of speaking. */
let failure: DomainError | Error | undefined;
let calls: { request: SynthesizeRequest; context: HandlerContext; actingFor: string | undefined }[] = [];
let admitted: string[] = [];
let refusal: DomainError | undefined;

beforeAll(async () => {
  let actingFor: string | undefined;
  const routes = speechRoutes({
    async *synthesize(request, context) {
      calls.push({ request, context, actingFor });
      if (failure !== undefined) throw failure;
      const format = request.responseFormat;
      const ignoredParameters =
        request.speed === undefined ? [] : ["speed", "provider.options.acme.größe, x"];
      yield startedFrame({ format, ignoredParameters });
      yield bytesFrame(audio.subarray(0, 400));
      yield bytesFrame(audio.subarray(400));
      yield finishedFrame();
    },
  });
  const transport = createLocalTransport(routes, {
    interceptors: [
      (next) => (request) => {
        actingFor = request.contextValues.get(actingForKey)?.keyHash;
        return next(request);
      },
    ],
  });
  gateway = await startGatewayServer({
    transport,
    settings: { corsOrigins: ["https://app.test"], maxBodyBytes: 1 << 20 },
    admissions: [
      async (exchange) => {
        admitted.push(exchange.operation);
        if (refusal !== undefined) throw refusal;
      },
    ],
  });
});

beforeEach(() => {
  failure = undefined;
  refusal = undefined;
  calls = [];
  admitted = [];
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

describe("speech", () => {
  test.for([
    [undefined, "audio/mpeg"],
    ["mp3", "audio/mpeg"],
    ["pcm", "audio/pcm"],
  ])("in format %s is %s", async ([format, contentType]) => {
    const response = await postSpeech(gateway, { ...least, response_format: format });
    expect(response.status).toBe(200);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(audio);
    const { date, "x-request-id": requestId, ...headers } = Object.fromEntries(response.headers);
    expect(headers).toEqual({
      connection: "keep-alive",
      "content-type": contentType,
      "keep-alive": "timeout=75",
      "transfer-encoding": "chunked",
      vary: "Origin",
      "x-audio-channels": "1",
      "x-audio-sample-rate": "24000",
      "x-generation-id": "gen-tts-1",
    });
    expect([date, requestId]).toEqual([expect.any(String), expect.stringMatching(/^req-/)]);
  });

  test("names the parameters that were ignored, in a form that a header can hold", async () => {
    const response = await postSpeech(gateway, { ...least, speed: 2 });
    expect(response.headers.get("x-ignored-parameters")).toBe(
      "speed,provider.options.acme.gr%C3%B6%C3%9Fe%2C%20x",
    );
    await response.arrayBuffer();
  });

  test("calls the service for the caller, under the request's id, with a deadline", async () => {
    const response = await postSpeech(gateway, least, { headers: { "x-request-id": "my-request/1" } });
    await response.arrayBuffer();
    expect(response.headers.get("x-request-id")).toBe("my-request/1");
    const [call] = calls;
    expect(call?.request).toMatchObject({ ...least, responseFormat: AudioFormat.MP3 });
    expect(call?.actingFor).toBe("ab".repeat(32));
    expect(call?.context.values.get(requestIdKey)).toBe("my-request/1");
    expect(call?.context.timeoutMs()).toBeGreaterThan(500_000);
    expect(call?.context.timeoutMs()).toBeLessThanOrEqual(600_000);
  });

  test.for([
    [ErrorReason.INVALID_BODY, 400],
    [ErrorReason.UNSUPPORTED_PARAMETER, 400],
    [ErrorReason.NOTHING_TO_SPEAK, 400],
    [ErrorReason.KEY_EXPIRED, 401],
    [ErrorReason.CREDITS_EXHAUSTED, 402],
    [ErrorReason.KEY_LIMIT_REACHED, 402],
    [ErrorReason.MODEL_UNKNOWN, 404],
    [ErrorReason.NO_ENDPOINT_LEFT, 404],
    [ErrorReason.RATE_LIMITED, 429],
    [ErrorReason.INTERNAL, 500],
    [ErrorReason.PROVIDER_FAILED, 502],
    [ErrorReason.SERVICE_UNAVAILABLE, 503],
    [ErrorReason.TIMED_OUT, 524],
    [ErrorReason.PROVIDER_OVERLOADED, 529],
  ] as const)("that the service refuses for reason %s is answered %s", async ([reason, status]) => {
    failure = new DomainError(reason, "the service's words", {
      generationId: "gen-tts-9",
      retryAfterMs: 1500,
      attempts: [{ providerName: "Acme", endpointId: "e", providerStatus: 500, reason }],
    });
    const response = await postSpeech(gateway);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toMatch(/^req-/);
    // A fault of the service itself leaves it without a word about the request.
    const isInternal = status === 500;
    expect(response.headers.get("x-generation-id")).toBe(isInternal ? null : "gen-tts-9");
    expect(response.headers.get("retry-after")).toBe([429, 503, 524, 529].includes(status) ? "2" : null);
    expect(response.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
    const text = await response.clone().text();
    expect(text).not.toContain("words");
    expect(text.includes('"attempts"')).toBe([502, 524, 529].includes(status));
    expect((await errorOf(response)).status).toBe(status);
  });

  test.for([ErrorReason.KEY_UNKNOWN, ErrorReason.KEY_MISSING, ErrorReason.CALLER_NOT_ALLOWED])(
    "that the service refuses to this process (reason %s) is our fault, not the caller's",
    async (reason) => {
      failure = new DomainError(reason, "bad token");
      expect(await errorOf(await postSpeech(gateway))).toEqual({ status: 500, reason: "internal" });
    },
  );

  test("that fails by a bug discloses nothing", async () => {
    failure = new TypeError("secret words");
    const response = await postSpeech(gateway);
    expect(await response.clone().text()).not.toContain("secret");
    expect(await errorOf(response)).toEqual({ status: 500, reason: "internal" });
  });
});

describe("the order of checks", () => {
  const invalid = { input: 5 };
  const tooLarge = JSON.stringify({ ...least, other: "x".repeat(1 << 20) });
  const notJson = { "content-type": "text/plain" };
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

  test.for([
    ["an unknown route comes before a bad key", "/api/v1/other", {}, invalid, 404, "route_unknown"],
    ["no key before a bad body", speechPath, { authorization: "" }, invalid, 401, "key_missing"],
    ["a malformed header", speechPath, { authorization: "Basic abc" }, invalid, 401, "key_unknown"],
    ["a header without a key", speechPath, { authorization: "Bearer" }, invalid, 401, "key_unknown"],
    ["an unknown key before a bad body", speechPath, bearer(testKeys.unknown), invalid, 401, "key_unknown"],
    ["an expired key", speechPath, bearer(testKeys.expired), least, 401, "key_expired"],
    [
      "a disabled key before a large body",
      speechPath,
      bearer(testKeys.disabled),
      tooLarge,
      401,
      "key_disabled",
    ],
    ["keys can't be checked", speechPath, bearer(testKeys.down), least, 503, "service_unavailable"],
    [
      "a management key before a bad body",
      speechPath,
      bearer(testKeys.management),
      invalid,
      401,
      "inference_key_required",
    ],
    [
      "a missing scope before a large body",
      speechPath,
      bearer(testKeys.images),
      tooLarge,
      401,
      "scope_missing",
    ],
    ["a large body before its type", speechPath, notJson, tooLarge, 400, "body_too_large"],
    ["a wrong type before bad fields", speechPath, notJson, invalid, 400, "invalid_body"],
    ["bad fields before the service", speechPath, {}, { ...invalid, model: "no/such" }, 400, "invalid_body"],
    [
      "a name too long to be a model",
      speechPath,
      {},
      { ...least, model: "x".repeat(999) },
      404,
      "model_unknown",
    ],
  ] as const)("%s", async ([, path, headers, body, status, reason]) => {
    failure = new DomainError(ErrorReason.MODEL_UNKNOWN, "no such model");
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const defaults = { authorization: `Bearer ${testKeys.speech}`, "content-type": "application/json" };
    const response = await fetch(gateway.baseUrl + path, {
      method: "POST",
      body: text,
      headers: { ...defaults, ...headers },
    });
    expect(await errorOf(response)).toEqual({ status, reason });
    expect(response.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
    expect(calls).toEqual([]);
  });

  test("limits are asked after the key and before the body", async () => {
    refusal = new DomainError(ErrorReason.RATE_LIMITED, "slow down", { retryAfterMs: 500 });
    expect(await errorOf(await postSpeech(gateway, tooLarge))).toEqual({
      status: 429,
      reason: "rate_limited",
    });
    expect(admitted).toEqual(["speech"]);
    const unknown = await postSpeech(gateway, least, { headers: bearer(testKeys.unknown) });
    expect((await errorOf(unknown)).status).toBe(401);
    expect(admitted).toEqual(["speech"]);
  });

  test("the scheme's case and the blanks behind it don't matter", async () => {
    const response = await postSpeech(gateway, least, {
      headers: { authorization: `bEARER   ${testKeys.speech}` },
    });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  });
});

describe("routes", () => {
  test.for([
    ["GET", speechPath],
    ["PUT", speechPath],
    ["DELETE", speechPath],
    ["PATCH", speechPath],
    ["OPTIONS", speechPath],
    ["PROPFIND", speechPath],
    ["POST", `${speechPath}/`],
    ["POST", "/api/v1/Audio/speech"],
    ["POST", "/audio/speech"],
    ["POST", "/api/v1/%zz"],
    ["GET", "/"],
    ["POST", "/healthz"],
  ] as const)("%s %s is none", async ([method, path]) => {
    const response = await fetch(gateway.baseUrl + path, { method });
    expect(await errorOf(response)).toEqual({ status: 404, reason: "route_unknown" });
    expect(response.headers.get("x-request-id")).toMatch(/^req-/);
  });

  test("that are none leave their path in the log, without query and without what may be a secret", async () => {
    const key = generateApiKey();
    await fetch(`${gateway.baseUrl}/api/v1/chat/completions/${key}?q=secret`, {
      headers: { "x-request-id": "lost" },
    });
    const line = await waitUntil(() => gateway.logged.find(({ request_id: id }) => id === "lost"));
    expect(line).toMatchObject({ route: "", path: "/api/v1/chat/completions/…", status: 404 });
    expect(JSON.stringify(line)).not.toMatch(/secret|q=/);
    await fetch(`${gateway.baseUrl}/api/v1/models`, { headers: { "x-request-id": "found" } });
    expect(
      await waitUntil(() => gateway.logged.find(({ request_id: id }) => id === "found")),
    ).not.toHaveProperty("path");
  });

  test("HEAD of a route is answered without a body, and of none with 404", async () => {
    const healthz = await fetch(`${gateway.baseUrl}/healthz`, { method: "HEAD" });
    expect([healthz.status, await healthz.text()]).toEqual([200, ""]);
    const unknown = await fetch(gateway.baseUrl + speechPath, { method: "HEAD" });
    expect([unknown.status, await unknown.text()]).toEqual([404, ""]);
  });

  test("a query does not change a route", async () => {
    const response = await fetch(`${gateway.baseUrl}/healthz?x=1`);
    expect(await response.json()).toEqual({ status: "ok" });
  });

  test("the page about credits is open", async () => {
    const response = await fetch(`${gateway.baseUrl}/credits`);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(await response.text()).toContain("<title>Credits</title>");
  });
});

test.for([
  ["plain.id-1", true],
  ["x".repeat(128), true],
  ["x".repeat(129), false],
  ["with blank", false],
  ["-dash", false],
  ['quote"', false],
] as const)("the request id %s is kept: %s", async ([id, kept]) => {
  for (const path of ["/healthz", "/none"]) {
    const response = await fetch(gateway.baseUrl + path, { headers: { "x-request-id": id } });
    await response.arrayBuffer();
    const answered = response.headers.get("x-request-id");
    if (kept) expect(answered).toBe(id);
    else expect(answered).toMatch(/^req-[0-9a-f-]{36}$/);
  }
});

describe("pages of other origins", () => {
  const exposed =
    "x-request-id, x-generation-id, x-ignored-parameters, x-unrecognized-prompt-words, x-audio-sample-rate, x-audio-channels, x-should-retry, retry-after";

  test("may call when listed, after a preflight without a key", async () => {
    const preflight = await fetch(gateway.baseUrl + speechPath, {
      method: "OPTIONS",
      headers: {
        origin: "https://app.test",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-sdk",
      },
    });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      "access-control-allow-origin": "https://app.test",
      "access-control-allow-methods": "GET, POST, PATCH, DELETE",
      "access-control-allow-headers": "authorization,content-type,x-sdk",
      "access-control-max-age": "7200",
      "x-request-id": expect.stringMatching(/^req-/),
      vary: "Origin",
    });
    for (const body of [least, {}]) {
      const response = await postSpeech(gateway, body, { headers: { origin: "https://app.test" } });
      await response.arrayBuffer();
      expect(response.headers.get("access-control-allow-origin")).toBe("https://app.test");
      expect(response.headers.get("access-control-expose-headers")).toBe(exposed);
    }
  });

  test("get no leave when not listed", async () => {
    const headers = { origin: "https://evil.test", "access-control-request-method": "POST" };
    const preflight = await fetch(gateway.baseUrl + speechPath, { method: "OPTIONS", headers });
    expect(await errorOf(preflight)).toEqual({ status: 404, reason: "route_unknown" });
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
  });
});

test("each request leaves one line without a text or a secret", async () => {
  const headers = { "x-request-id": "logged-1" };
  await (await postSpeech(gateway, { ...least, input: "seashell" }, { headers })).arrayBuffer();
  await (
    await postSpeech(gateway, { input: "seashell" }, { headers: { "x-request-id": "logged-2" } })
  ).text();
  const lineOf = (id: string) => waitUntil(() => gateway.logged.find((line) => line.request_id === id));
  expect(await lineOf("logged-1")).toMatchObject({
    method: "POST",
    route: speechPath,
    status: 200,
    complete: true,
    bytes: 1000,
    generation_id: "gen-tts-1",
    account_id: "account-1",
    key_hash: "abababababab",
    ms: expect.any(Number),
  });
  expect(await lineOf("logged-2")).toMatchObject({ status: 400, reason: "invalid_body" });
  expect(gateway.logged.filter((line) => line.request_id === "logged-1")).toHaveLength(1);
  const all = JSON.stringify(gateway.logged);
  expect(all).not.toContain("seashell");
  expect(all).not.toContain(testKeys.speech);
});

test("whatever a body holds, the answer is one of the contract's and never 500", async () => {
  const text = fc.oneof(
    fc.json(),
    fc.string(),
    fc
      .dictionary(fc.constantFrom("input", "model", "speed", "provider", "trace", "voice"), fc.jsonValue())
      .map((fields) => JSON.stringify({ ...least, ...fields })),
  );
  await fc.assert(
    fc.asyncProperty(text, async (body) => {
      const response = await postSpeech(gateway, body);
      expect([200, 400, 404]).toContain(response.status);
      await response.arrayBuffer();
    }),
    { numRuns: 200 },
  );
});
