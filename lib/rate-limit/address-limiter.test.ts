import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import {
  audioFrame,
  type SpeechServer,
  startSpeechServer,
  stockTransport,
  transportNames,
} from "../../test/support/services/speech-server.ts";
import { generateApiKey, hashApiKey } from "../identity/api-key.ts";
import { createKeyAuthenticator, keyRefusal } from "../identity/authenticate.ts";
import { createIdentityInterceptor } from "../identity/identity-interceptor.ts";
import { serverInterceptor } from "../rpc/interceptors.ts";
import { cidrListVar, readConfig } from "../runtime/config.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { wordOfReason } from "../runtime/error-code.ts";
import { silentLog } from "../runtime/log.ts";
import { AddressLimiter } from "./address-limiter.ts";

const loopback = readConfig({ A: cidrListVar() }, { A: "127.0.0.0/8,::1/128" }).A;
const perMinute = 3;

let server: SpeechServer | undefined;
let lookUps = 0;

afterEach(() => server?.[Symbol.asyncDispose]());

/** The speech service on a real port; it knows one key, and its clock stands still. */
async function start(goodKey = generateApiKey()) {
  const clock = new ManualClock();
  const limits = { ANONYMOUS_LIMIT_PER_MINUTE: perMinute, TRUSTED_PROXIES: loopback };
  const strangers = new AddressLimiter(limits, clock);
  lookUps = 0;
  const authenticateKey = createKeyAuthenticator({
    clock,
    async lookUp(keyHash) {
      lookUps += 1;
      if (keyHash !== hashApiKey(goodKey)) throw keyRefusal(ErrorReason.KEY_UNKNOWN, "unknown");
      return create(PrincipalSchema, { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] });
    },
  });
  const verifyToken = () => Promise.reject(new DomainError(ErrorReason.KEY_UNKNOWN, "no token"));
  const identity = createIdentityInterceptor({
    audience: "speech",
    authenticateKey,
    verifyToken,
    strangers,
    clock,
  });
  server = await startSpeechServer({
    routes: (router) =>
      router.service(
        SpeechService,
        {
          listSpeechModels: () => ({ models: [] }),
          async *synthesize() {
            yield audioFrame(1);
          },
        },
        { interceptors: [serverInterceptor(silentLog), identity] },
      ),
  });
  return { clock, goodKey, strangers, baseUrl: server.baseUrl };
}

function headersOf(key: string | undefined, from: string): Record<string, string> {
  return {
    "x-forwarded-for": `198.51.100.200, ${from}`,
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
}

/** `ok`, or the reason and the code of the refusal. */
async function outcome(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "ok",
    (thrown: unknown) =>
      `${wordOfReason(DomainError.from(thrown).reason)} ${Code[ConnectError.from(thrown).code]}`,
  );
}

async function drain(frames: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of frames);
}

describe.for(transportNames)("strangers over %s", (name) => {
  test("are refused by address, those who generate as too many, others as unknown, without a look-up", async () => {
    const { baseUrl, strangers, clock } = await start();
    const speech = createClient(SpeechService, stockTransport(name, baseUrl));
    const synthesize = (key: string | undefined, from: string) =>
      outcome(drain(speech.synthesize({}, { headers: headersOf(key, from) })));
    const list = (key: string | undefined, from: string) =>
      outcome(speech.listSpeechModels({}, { headers: headersOf(key, from) }));
    expect(await synthesize(undefined, "192.0.2.1")).toBe("key_missing Unauthenticated");
    expect(await synthesize(generateApiKey(), "192.0.2.1")).toBe("key_unknown Unauthenticated");
    expect(await list("sk-malformed", "192.0.2.1")).toBe("key_unknown Unauthenticated");
    const before = lookUps;
    for (const key of [undefined, generateApiKey(), "sk-malformed"]) {
      expect(await synthesize(key, "192.0.2.1")).toBe("rate_limited ResourceExhausted");
    }
    expect(await list(undefined, "192.0.2.1")).toBe("key_missing Unauthenticated");
    expect(await list(generateApiKey(), "192.0.2.1")).toBe("key_unknown Unauthenticated");
    expect([lookUps, strangers.refused]).toEqual([before, 5]);
    expect(await synthesize(undefined, "192.0.2.2")).toBe("key_missing Unauthenticated");
    clock.advance(60_000);
    expect(await synthesize(undefined, "192.0.2.1")).toBe("key_missing Unauthenticated");
  });
});

describe("a good key", () => {
  test("is never refused for its address once it is known, and counts against it at no time", async () => {
    const { baseUrl, goodKey, clock } = await start();
    const speech = createClient(SpeechService, stockTransport("gRPC", baseUrl));
    const call = (key: string) =>
      outcome(drain(speech.synthesize({}, { headers: headersOf(key, "192.0.2.1") })));
    for (let time = 0; time < 2 * perMinute; time += 1) {
      // So long that it is looked up each time, so short that the minute lasts.
      clock.advance(5001);
      expect(await call(goodKey)).toBe("ok");
    }
    expect(lookUps).toBe(2 * perMinute);
    for (let time = 0; time < perMinute; time += 1) await call(generateApiKey());
    expect(await call(generateApiKey())).toContain("rate_limited");
    expect(await call(goodKey)).toBe("ok");
    clock.advance(5001);
    expect(await call(goodKey)).toBe("ok");
  });
});
