import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { generateApiKey, hashApiKey } from "../../lib/identity/api-key.ts";
import { createKeyAuthenticator, keyRefusal } from "../../lib/identity/authenticate.ts";
import { AddressLimiter } from "../../lib/rate-limit/address-limiter.ts";
import { cidrListVar, readConfig } from "../../lib/runtime/config.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { postImages } from "../../test/support/services/gateway-images.ts";
import {
  bytesFrame,
  finishedFrame,
  type GatewayServer,
  postSpeech,
  startedFrame,
  startGatewayServer,
} from "../../test/support/services/gateway-server.ts";

const goodKey = generateApiKey();
const clock = new ManualClock();
const trusted = readConfig({ A: cidrListVar() }, { A: "127.0.0.0/8,::1/128" }).A;
let lookUps = 0;
let accountIsAway = false;

beforeEach(() => {
  lookUps = 0;
  accountIsAway = false;
  clock.advance(60_000);
});

/** A gateway that knows one key, and how many strangers of an address may come in a minute. */
function start(perMinute: number, TRUSTED_PROXIES = trusted): Promise<GatewayServer> {
  return startGatewayServer({
    strangers: new AddressLimiter({ ANONYMOUS_LIMIT_PER_MINUTE: perMinute, TRUSTED_PROXIES }, clock),
    authenticate: createKeyAuthenticator({
      clock,
      async lookUp(keyHash) {
        lookUps += 1;
        if (accountIsAway) throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "away");
        if (keyHash !== hashApiKey(goodKey)) throw keyRefusal(ErrorReason.KEY_UNKNOWN, "unknown");
        const scopes = [KeyScope.SPEECH, KeyScope.IMAGES];
        return create(PrincipalSchema, { keyKind: KeyKind.INFERENCE, scopes });
      },
    }),
    handlers: {
      listSpeechModels: () => ({ models: [] }),
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        yield finishedFrame();
      },
    },
  });
}

function headersOf(key: string | undefined, from: string): Record<string, string> {
  return { authorization: key === undefined ? "" : `Bearer ${key}`, "x-forwarded-for": from };
}

type Send = typeof postSpeech | typeof postImages;

/** Status and reason, the answer read to its end. */
async function refusalOf(response: Promise<Response>): Promise<string> {
  const answer = await response;
  const text = await answer.text();
  return answer.status === 200 ? "200" : `${answer.status} ${JSON.parse(text).error.metadata.reason}`;
}

function send(
  post: Send,
  gateway: GatewayServer,
  key: string | undefined,
  from = "192.0.2.1",
): Promise<string> {
  return refusalOf(post(gateway, undefined, { headers: headersOf(key, from) }));
}

function listModels(gateway: GatewayServer, key: string | undefined, from = "192.0.2.1"): Promise<string> {
  return refusalOf(fetch(`${gateway.baseUrl}/api/v1/models`, { headers: headersOf(key, from) }));
}

describe("requests without a good key", () => {
  test.for<[string, Send]>([
    ["speech", postSpeech],
    ["images", postImages],
  ])("are 401, and 429 with when to come again once too many came from an address: %s", async ([, post]) => {
    await using gateway = await start(2);
    expect(await send(post, gateway, undefined)).toBe("401 key_missing");
    expect(await send(post, gateway, generateApiKey())).toBe("401 key_unknown");
    clock.advance(30_000);
    for (const key of [undefined, generateApiKey(), "not a key", goodKey])
      expect(await send(post, gateway, key)).toBe("429 rate_limited");
    const response = await post(gateway, undefined, { headers: headersOf(undefined, "192.0.2.1") });
    expect([response.headers.get("retry-after"), lookUps]).toEqual(["30", 1]);
    expect(await send(post, gateway, undefined, "192.0.2.2")).toBe("401 key_missing");
    clock.advance(30_000);
    expect(await send(post, gateway, undefined)).toBe("401 key_missing");
  });

  test("stay 401 elsewhere, without a look-up", async () => {
    await using gateway = await start(1);
    expect(await listModels(gateway, generateApiKey())).toBe("401 key_unknown");
    expect(await listModels(gateway, undefined)).toBe("401 key_missing");
    for (const key of [generateApiKey(), goodKey])
      expect(await listModels(gateway, key)).toBe("401 key_unknown");
    expect(lookUps).toBe(1);
  });

  test("come from who connects where no proxy is trusted, whatever they say", async () => {
    await using gateway = await start(1, []);
    expect(await send(postSpeech, gateway, undefined, "192.0.2.1")).toBe("401 key_missing");
    expect(await send(postSpeech, gateway, undefined, "192.0.2.2")).toBe("429 rate_limited");
  });

  test("are not those whose keys can't be checked now", async () => {
    await using gateway = await start(1);
    accountIsAway = true;
    for (const _ of [1, 2, 3])
      expect(await send(postSpeech, gateway, generateApiKey())).toBe("503 service_unavailable");
    accountIsAway = false;
    expect(await send(postSpeech, gateway, goodKey)).toBe("200");
  });
});

test("a key that is known to be good is served whoever else comes from its address", async () => {
  await using gateway = await start(1);
  expect(await send(postSpeech, gateway, goodKey)).toBe("200");
  expect(await send(postSpeech, gateway, undefined)).toBe("401 key_missing");
  expect(await send(postSpeech, gateway, undefined)).toBe("429 rate_limited");
  expect(await send(postSpeech, gateway, goodKey)).toBe("200");
  clock.advance(5001);
  expect(await send(postSpeech, gateway, goodKey)).toBe("200");
  expect(lookUps).toBe(2);
});

test("a key that is good is served, however many bring it before that is known", async () => {
  await using gateway = await start(5);
  const answers = await Promise.all(Array.from({ length: 50 }, () => send(postSpeech, gateway, goodKey)));
  expect([new Set(answers), lookUps]).toEqual([new Set(["200"]), 1]);
});

test("an unknown key costs one look-up, however many bring it before that is known", async () => {
  await using gateway = await start(5);
  const key = generateApiKey();
  const answers = await Promise.all(Array.from({ length: 50 }, () => send(postSpeech, gateway, key)));
  expect(answers.filter((answer) => answer === "401 key_unknown")).toHaveLength(5);
  expect(answers.filter((answer) => answer === "429 rate_limited")).toHaveLength(45);
  expect(lookUps).toBe(1);
});

test("many unknown keys at once cost as many look-ups as an address may cause", async () => {
  await using gateway = await start(20);
  const refusals = await Promise.all(
    Array.from({ length: 200 }, () => send(postSpeech, gateway, generateApiKey())),
  );
  const count = (refusal: string) => refusals.filter((each) => each === refusal).length;
  expect([count("401 key_unknown"), count("429 rate_limited"), lookUps]).toEqual([20, 180, 20]);
});
