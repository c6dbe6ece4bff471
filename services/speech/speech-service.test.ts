import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { createLocalTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { ProviderError } from "../../providers/contract.ts";
import { defaultBreakerOptions } from "../../providers/routing/breaker.ts";
import { FakePaidRequests } from "../../test/fakes/fake-paid-requests.ts";
import { catalogOf, FakeSpeaker, fakeProviders, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { unlimited } from "../../test/fakes/unlimited.ts";
import { createSpeechService, type SpeechServiceOptions } from "./speech-service.ts";

const longMs = 60_000;
const inferenceKey = { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] };

type PrincipalFields = MessageInitShape<typeof PrincipalSchema>;

/** Who calls: what the authorization header says, and whose key that is. */
interface CallerOptions {
  authorization?: string;
  principal?: PrincipalFields;
}

function startService(speakers: Record<string, FakeSpeaker | undefined>) {
  const logged: Record<string, unknown>[] = [];
  const principals = new Map<string, PrincipalFields>();
  const audiences: string[] = [];
  const options: SpeechServiceOptions = {
    catalog: catalogOf(
      speechEndpoint(),
      speechEndpoint({ providerSlug: "zenith" }),
      speechEndpoint({ providerSlug: "zenith", id: "other", model: "zenith/voice" }),
    ),
    providers: fakeProviders(speakers),
    limits: { firstByteTimeoutMs: longMs, idleTimeoutMs: longMs, timeoutMs: longMs },
    paid: new FakePaidRequests(),
    limiter: unlimited,
    recordProviderTest: async () => undefined,
    random: () => 0.5,
    authenticateKey: async (key) => create(PrincipalSchema, principals.get(key) ?? inferenceKey),
    async verifyToken(_token, audience) {
      audiences.push(audience);
      return { issuer: "gateway", subject: "", principal: create(PrincipalSchema, inferenceKey) };
    },
    log: createLog({
      name: "speech",
      level: "trace",
      destination: { write: (line) => void logged.push(JSON.parse(line)) },
    }),
  };
  const service = createSpeechService(options);
  const client = ({ authorization = "Bearer sk-key", principal = inferenceKey }: CallerOptions = {}) => {
    principals.set("sk-key", principal);
    const interceptor: Interceptor = (next) => (request) => {
      if (authorization !== "") request.header.set("authorization", authorization);
      return next(request);
    };
    return createRpcClient(
      SpeechService,
      createLocalTransport(service.routes, { interceptors: [interceptor] }),
    );
  };
  return { service, client, logged, audiences };
}

const hello = { input: "Hello.", model: "acme/voice" };

describe("the providers that are on", () => {
  test("decide what is listed and served", async () => {
    const acme = new FakeSpeaker();
    const { client } = startService({ acme, zenith: undefined });
    const { models } = await client().listSpeechModels({});
    expect(models.map(({ id, endpoints }) => [id, endpoints.length])).toEqual([["acme/voice", 1]]);
    await Array.fromAsync(client().synthesize(hello));
    expect(acme.heard.length).toBe(1);
    const refused = Array.fromAsync(client().synthesize({ ...hello, model: "zenith/voice" }));
    await expect(refused).rejects.toMatchObject({ reason: ErrorReason.MODEL_UNKNOWN });
  });

  test("make the service ready, and without any it says why it is not", async () => {
    expect(await startService({ acme: new FakeSpeaker() }).service.readiness()).toEqual([]);
    expect(await startService({ acme: undefined }).service.readiness()).toEqual([
      "no speech model: every provider is off",
    ]);
  });
});

describe("a caller", () => {
  test.for<[string, CallerOptions, ErrorReason]>([
    ["without a key", { authorization: "" }, ErrorReason.KEY_MISSING],
    [
      "with a management key",
      { principal: { keyKind: KeyKind.MANAGEMENT } },
      ErrorReason.INFERENCE_KEY_REQUIRED,
    ],
    [
      "with a key for images alone",
      { principal: { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.IMAGES] } },
      ErrorReason.SCOPE_MISSING,
    ],
  ])("%s reaches no provider", async ([, caller, reason]) => {
    const acme = new FakeSpeaker();
    const { client } = startService({ acme });
    const refused = Array.fromAsync(client(caller).synthesize(hello));
    await expect(refused).rejects.toMatchObject({ reason });
    expect(acme.heard).toEqual([]);
  });

  test("may be a process with a token for this service that acts for a key", async () => {
    const { client, audiences } = startService({ acme: new FakeSpeaker() });
    const frames = await Array.fromAsync(client({ authorization: "Bearer a.b.c" }).synthesize(hello));
    expect(frames.map(({ frame }) => frame.case)).toEqual(["started", "audio", "finished"]);
    expect(audiences).toEqual(["speech"]);
  });

  test("is named in the log of a failed attempt by account and key, with the request", async () => {
    const acme = new FakeSpeaker({ before: [new TypeError("a bug")] });
    const { client, logged } = startService({ acme });
    const principal = { ...inferenceKey, accountId: "account-1", keyHash: "ab".repeat(32) };
    const failed = Array.fromAsync(client({ principal }).synthesize(hello));
    await expect(failed).rejects.toMatchObject({ reason: ErrorReason.INTERNAL });
    expect(logged).toContainEqual(
      expect.objectContaining({
        msg: "attempt failed",
        account_id: "account-1",
        key_hash: "abababababab",
        request_id: expect.stringMatching(/^req-/),
        rpc: "media.speech.v1.SpeechService/Synthesize",
      }),
    );
  });
});

describe("endpoints that fail", () => {
  test("go last: the service remembers them from one request to the next", async () => {
    const acme = new FakeSpeaker({ audio: [] });
    const zenith = new FakeSpeaker();
    const { client } = startService({ acme, zenith });
    for (let request = 0; request < 20; request++) await Array.fromAsync(client().synthesize(hello));
    expect([acme.heard.length, zenith.heard.length]).toEqual([1, 20]);
  });

  test("rest where the caller would have them first", async () => {
    const acme = new FakeSpeaker({ audio: [] });
    const zenith = new FakeSpeaker();
    const { client } = startService({ acme, zenith });
    const { failuresToOpen } = defaultBreakerOptions;
    for (let request = 0; request < failuresToOpen + 2; request++) {
      await Array.fromAsync(client().synthesize({ ...hello, provider: { order: ["acme"] } }));
    }
    expect([acme.heard.length, zenith.heard.length]).toEqual([failuresToOpen, failuresToOpen + 2]);
  });

  test("in the middle of each answer rest, too", async () => {
    const acme = new FakeSpeaker({ audio: [Buffer.from("audio"), new ProviderError("network", "broken")] });
    const { client } = startService({ acme });
    const { failuresToOpen } = defaultBreakerOptions;
    for (let request = 0; request < failuresToOpen + 2; request++) {
      await expect(Array.fromAsync(client().synthesize(hello))).rejects.toThrow();
    }
    expect(acme.heard.length).toBe(failuresToOpen);
  });
});
