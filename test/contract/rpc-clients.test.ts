import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "../../gen/health/v1/health_pb.ts";
import { AccountAdminService } from "../../gen/media/account/v1/account_admin_service_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { KeyKind } from "../../gen/media/account/v1/key_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import {
  type ErrorDetail,
  ErrorDetailSchema,
  ErrorReason,
} from "../../gen/media/error/v1/error_reason_pb.ts";
import { AudioFormat, type SynthesizeResponse } from "../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { generateApiKey, hashApiKey } from "../../lib/identity/api-key.ts";
import { mp3Frames } from "../support/mp3-frames.ts";
import { openSharedStandalone, type SharedStandalone } from "../support/processes/shared-standalone.ts";
import { bytesOf, speak } from "../support/processes/standalone.ts";
import { stockTransport, transportNames } from "../support/services/speech-server.ts";
import type { OpenAiUpstream } from "../upstreams/openai/openai.ts";

const local = { model: "local/flite", input: "Hello." };
const remote = { model: "openai/tts-1", voice: "alloy", input: "Hello." };

let upstream: OpenAiUpstream;
let stack: SharedStandalone;
/** What REST gives for `local`. */
let rest: Record<"mp3" | "pcm", Buffer>;

beforeAll(async () => {
  stack = await openSharedStandalone();
  ({ upstream } = stack);
  const say = async (format: string) =>
    bytesOf(await speak(stack, stack.inferenceKey, { ...local, response_format: format }));
  rest = { mp3: await say("mp3"), pcm: await say("pcm") };
});

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

async function framesOf(stream: AsyncIterable<SynthesizeResponse>): Promise<SynthesizeResponse["frame"][]> {
  return Array.fromAsync(stream, ({ frame }) => frame);
}

function audioOf(frames: readonly SynthesizeResponse["frame"][]): Buffer {
  return Buffer.concat(frames.map((frame) => (frame.case === "audio" ? frame.value : new Uint8Array())));
}

async function errorOf(call: Promise<unknown>): Promise<{ code: Code; detail: ErrorDetail | undefined }> {
  const thrown = await call.then(
    () => new Error("no error"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof ConnectError)) throw thrown;
  return { code: thrown.code, detail: thrown.findDetails(ErrorDetailSchema)[0] };
}

describe.for(transportNames)("%s", (name) => {
  const speech = () => createClient(SpeechService, stockTransport(name, stack.rpcUrl));

  test("speaks: started, audio, finished", async () => {
    for (const [format, responseFormat] of [
      ["mp3", AudioFormat.MP3],
      ["pcm", AudioFormat.PCM],
    ] as const) {
      const request = { ...local, responseFormat };
      const frames = await framesOf(speech().synthesize(request, bearer(stack.inferenceKey)));
      expect(frames[0]).toMatchObject({
        case: "started",
        value: {
          generationId: expect.stringMatching(/^gen-tts-/),
          format: responseFormat,
          sampleRateHz: 24_000,
          channels: 1,
          endpoint: { model: "local/flite", providerSlug: "local", providerName: "Local" },
          ignoredParameters: [],
        },
      });
      expect(new Set(frames.slice(1, -1).map((frame) => frame.case))).toEqual(new Set(["audio"]));
      expect(frames.at(-1)).toMatchObject({ case: "finished", value: { inputCharacters: 6n } });
      expect(audioOf(frames).equals(rest[format])).toBe(true);
    }
    expect(mp3Frames(rest.mp3).length).toBeGreaterThan(10);
  });

  test("lists the models for any key", async () => {
    for (const key of [stack.inferenceKey, stack.managementKey]) {
      const { models } = await speech().listSpeechModels({}, bearer(key));
      expect(models.map(({ id }) => id)).toEqual([
        "local/flite",
        "openai/gpt-4o-mini-tts",
        "openai/tts-1",
        "openai/tts-1-hd",
      ]);
      expect(models[0]).toMatchObject({ defaultVoice: "slt", endpoints: [{ maxInputCharacters: 4096 }] });
    }
  });

  test("gets audio while the provider makes the rest, and an error amid it", async () => {
    const seen = Promise.withResolvers<void>();
    const beforeChunk = (index: number) => (index === 0 ? undefined : seen.promise);
    upstream.next({ kind: "audio", cutAfterBytes: 8192, beforeChunk });
    const cases: unknown[] = [];
    const read = async () => {
      for await (const { frame } of speech().synthesize(remote, bearer(stack.inferenceKey))) {
        cases.push(frame.case);
        if (frame.case === "audio") seen.resolve();
      }
    };
    const { code, detail } = await errorOf(read());
    expect(cases.slice(0, 2)).toEqual(["started", "audio"]);
    expect(cases).not.toContain("finished");
    expect(code).toBe(Code.Aborted);
    expect(detail).toMatchObject({
      reason: ErrorReason.PROVIDER_FAILED,
      generationId: expect.stringMatching(/^gen-tts-/),
      attempts: [{ providerName: "OpenAI", providerStatus: 0 }],
    });
  });

  test("stops the provider by cancelling once there is audio to be charged for", async () => {
    upstream.next({ kind: "audio", stallAfterBytes: 4096 });
    const received = upstream.received(upstream.requests.length + 1);
    const leaving = new AbortController();
    const options = { ...bearer(stack.inferenceKey), signal: leaving.signal };
    const call = errorOf(framesOf(speech().synthesize(remote, options)));
    const { ended } = await received;
    leaving.abort();
    expect((await call).code).toBe(Code.Canceled);
    expect(await ended).toBe("closed_by_client");
  });

  test.for<[string, object, Code, object]>([
    ["no text", { ...local, input: "" }, Code.InvalidArgument, { reason: ErrorReason.INVALID_BODY }],
    [
      "an unknown voice",
      { ...local, voice: "nobody" },
      Code.InvalidArgument,
      {
        reason: ErrorReason.UNSUPPORTED_PARAMETER,
        issues: [{ path: "voice", message: "is not a voice of this model" }],
      },
    ],
    ["an unknown model", { ...local, model: "a/b" }, Code.NotFound, { reason: ErrorReason.MODEL_UNKNOWN }],
    [
      "an overload",
      { ...remote, input: "[[status=429 retry-after=2]]" },
      Code.Unavailable,
      {
        reason: ErrorReason.PROVIDER_OVERLOADED,
        retryAfterMs: 2000n,
        attempts: [{ providerName: "OpenAI", providerStatus: 429, reason: ErrorReason.PROVIDER_OVERLOADED }],
      },
    ],
  ])("gets an error with its detail: %s", async ([, request, code, detail]) => {
    const call = framesOf(speech().synthesize(request, bearer(stack.inferenceKey)));
    expect(await errorOf(call)).toMatchObject({ code, detail });
    // Keeps the endpoint's breaker closed.
    await framesOf(speech().synthesize(remote, bearer(stack.inferenceKey)));
  });

  test.for<[string, () => { headers?: Record<string, string> }, Code, ErrorReason]>([
    ["no key", () => ({}), Code.Unauthenticated, ErrorReason.KEY_MISSING],
    ["an unknown key", () => bearer(generateApiKey()), Code.Unauthenticated, ErrorReason.KEY_UNKNOWN],
    ["a token of nobody", () => bearer("e30.e30.c2ln"), Code.Unauthenticated, ErrorReason.KEY_UNKNOWN],
    [
      "a management key",
      () => bearer(stack.managementKey),
      Code.PermissionDenied,
      ErrorReason.INFERENCE_KEY_REQUIRED,
    ],
  ])("is refused with %s", async ([, options, code, reason]) => {
    const call = framesOf(speech().synthesize(local, options()));
    expect(await errorOf(call)).toMatchObject({ code, detail: { reason } });
  });
});

describe("the account's RPCs", () => {
  const client = <S extends typeof KeyService | typeof AccountInternalService | typeof AccountAdminService>(
    service: S,
  ) => createClient(service, stockTransport("gRPC", stack.rpcUrl));

  test("are open to a management key where keys are managed", async () => {
    const { keys } = await client(KeyService).listKeys({}, bearer(stack.managementKey));
    expect(keys.map(({ hash }) => hash).sort()).toEqual(
      [hashApiKey(stack.inferenceKey), hashApiKey(stack.managementKey)].sort(),
    );
    expect(JSON.stringify(keys, (_, value) => String(value))).not.toContain(stack.inferenceKey);
    const { key } = await client(KeyService).getCurrentKey({}, bearer(stack.inferenceKey));
    expect(key).toMatchObject({ hash: hashApiKey(stack.inferenceKey), kind: KeyKind.INFERENCE });
  });

  test("are closed to an inference key where keys are managed", async () => {
    expect(await errorOf(client(KeyService).listKeys({}, bearer(stack.inferenceKey)))).toMatchObject({
      code: Code.PermissionDenied,
      detail: { reason: ErrorReason.MANAGEMENT_KEY_REQUIRED },
    });
  });

  test("are closed to every API key where processes and operators call", async () => {
    const keyHash = hashApiKey(stack.inferenceKey);
    for (const key of [stack.inferenceKey, stack.managementKey]) {
      const calls = [
        () => client(AccountInternalService).authenticate({ keyHash }, bearer(key)),
        () => client(AccountAdminService).listAccounts({}, bearer(key)),
        () => client(AccountAdminService).createAccount({ name: "mine" }, bearer(key)),
      ];
      for (const call of calls) {
        expect(await errorOf(call())).toMatchObject({
          code: Code.PermissionDenied,
          detail: { reason: ErrorReason.CALLER_NOT_ALLOWED },
        });
      }
    }
    expect(await errorOf(client(AccountAdminService).listAccounts({}))).toMatchObject({
      code: Code.Unauthenticated,
      detail: { reason: ErrorReason.KEY_MISSING },
    });
  });
});

test("health is open to everybody", async () => {
  const health = createClient(Health, stockTransport("gRPC", stack.rpcUrl));
  for (const service of ["", SpeechService.typeName, KeyService.typeName]) {
    expect((await health.check({ service })).status).toBe(ServingStatus.SERVING);
  }
  for (const path of ["/healthz", "/readyz"]) expect((await fetch(stack.rpcUrl + path)).status).toBe(200);
});
