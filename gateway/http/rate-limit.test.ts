import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { LocalLimiter } from "../../lib/rate-limit/local-limiter.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import {
  imageFinished,
  imageStarted,
  postImages,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import {
  bytesFrame,
  errorOf,
  finishedFrame,
  type GatewayServer,
  postSpeech,
  RawConnection,
  rawSpeechRequest,
  startedFrame,
  startGatewayServer,
} from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { limitRequests } from "./rate-limit.ts";

type PrincipalFields = MessageInitShape<typeof PrincipalSchema>;

const inference = { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH, KeyScope.IMAGES] };
const keys: Readonly<Record<string, PrincipalFields>> = {
  "sk-one": { ...inference, rateBucket: "one" },
  "sk-one-rotated": { ...inference, rateBucket: "one" },
  "sk-two": { ...inference, rateBucket: "two" },
  "sk-own-limit": { ...inference, rateBucket: "three", rateLimitPerMinute: 5 },
  "sk-speech-alone": { ...inference, rateBucket: "one", scopes: [KeyScope.SPEECH] },
  "sk-management": { keyKind: KeyKind.MANAGEMENT, rateBucket: "four" },
};

const clock = new ManualClock();
/** What the speech service does behind its first frame. */
let behave: (context: HandlerContext) => Promise<void>;
let calls = 0;

beforeEach(() => {
  behave = async () => undefined;
  calls = 0;
});

/** A gateway with limits of its own. */
function start(limits: { perMinute?: number; maxInFlight?: number }): Promise<GatewayServer> {
  const limiter = new LocalLimiter({ limits: { perMinute: 1000, maxInFlight: 64, ...limits }, clock });
  return startGatewayServer({
    admissions: [limitRequests(limiter)],
    settings: { maxBodyBytes: 1000 },
    authenticate: async (key) => {
      const fields = keys[key];
      if (fields === undefined) throw new DomainError(ErrorReason.KEY_UNKNOWN, "unknown");
      return create(PrincipalSchema, fields);
    },
    handlers: {
      listSpeechModels: () => ({ models: [] }),
      async *synthesize(_request, context) {
        calls += 1;
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        await behave(context);
        yield finishedFrame();
      },
    },
    imageHandlers: {
      listImageModels: () => ({ models: [] }),
      async *generate() {
        calls += 1;
        yield imageStarted();
        yield* wholeImage(0, Buffer.from("picture"));
        yield imageFinished();
      },
    },
  });
}

type Send = typeof postSpeech | typeof postImages;

function send(post: Send, gateway: GatewayServer, key: string, body?: unknown): Promise<Response> {
  return post(gateway, body, { headers: { authorization: `Bearer ${key}` } });
}

/** Status of the answer, read to its end. */
async function statusOf(response: Promise<Response>): Promise<number> {
  const { status, body } = await response;
  await body?.pipeTo(new WritableStream());
  return status;
}

/** Sends until a request is let in, which has then ended. */
function letIn(gateway: GatewayServer): Promise<unknown> {
  return waitUntil(async () => (await statusOf(send(postSpeech, gateway, "sk-one"))) === 200);
}

describe("a key that asks too often", () => {
  test.for<[string, Send]>([
    ["speech", postSpeech],
    ["images", postImages],
  ])("is told so, and when to come again: %s", async ([, post]) => {
    await using gateway = await start({ perMinute: 2 });
    for (const _ of [1, 2]) expect(await statusOf(send(post, gateway, "sk-one"))).toBe(200);
    clock.advance(20_500);
    const response = await send(post, gateway, "sk-one");
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("40");
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toMatch(/^req-/);
    expect(await response.text()).toBe(
      '{"error":{"code":429,"message":"Rate limit exceeded","metadata":{"reason":"rate_limited","retry_after_s":40}}}',
    );
    expect(calls).toBe(2);
    clock.advance(39_500);
    expect(await statusOf(send(post, gateway, "sk-one"))).toBe(200);
  });

  test("is counted over speech and images together, and with those it was rotated to", async () => {
    await using gateway = await start({ perMinute: 3 });
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(200);
    expect(await statusOf(send(postImages, gateway, "sk-one"))).toBe(200);
    expect(await statusOf(send(postSpeech, gateway, "sk-one-rotated"))).toBe(200);
    for (const key of ["sk-one", "sk-one-rotated"]) {
      expect(await errorOf(await send(postImages, gateway, key))).toEqual({
        status: 429,
        reason: "rate_limited",
      });
    }
    expect(await statusOf(send(postSpeech, gateway, "sk-two"))).toBe(200);
  });

  test("has its own limit where it carries one", async () => {
    await using gateway = await start({ perMinute: 2 });
    const statuses = [];
    for (let count = 0; count < 7; count += 1)
      statuses.push(await statusOf(send(postSpeech, gateway, "sk-own-limit")));
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429]);
  });

  test("is not limited on any other route", async () => {
    await using gateway = await start({ perMinute: 1 });
    await statusOf(send(postSpeech, gateway, "sk-one"));
    const paths = ["/api/v1/models", "/api/v1/images/models", "/api/v1/openapi.json", "/healthz"];
    for (const path of [...paths, ...paths]) {
      const headers = { authorization: "Bearer sk-one" };
      expect(await statusOf(fetch(gateway.baseUrl + path, { headers })), path).toBe(200);
    }
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(429);
  });
});

describe("the order of checks", () => {
  const tooLarge = { input: "x".repeat(2000), model: "acme/one" };

  test("has 429 before what is wrong with the body", async () => {
    await using gateway = await start({ perMinute: 1 });
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(200);
    for (const body of [tooLarge, "{not JSON", {}]) {
      expect(await statusOf(send(postImages, gateway, "sk-one", body))).toBe(429);
    }
    const others = [];
    for (const body of [tooLarge, "{not JSON"])
      others.push(await statusOf(send(postImages, gateway, "sk-two", body)));
    expect(others).toEqual([413, 429]);
  });

  test("asks for no body of a request that is refused", async () => {
    await using gateway = await start({ perMinute: 1 });
    await statusOf(send(postSpeech, gateway, "sk-one"));
    using connection = new RawConnection(gateway);
    const request = rawSpeechRequest(["Content-Length: 500", "Expect: 100-continue"]);
    connection.send(request.replace(/Bearer \S+/, "Bearer sk-one"));
    await waitUntil(() => connection.received.includes("retry_after_s"));
    expect(connection.received).toMatch(/^HTTP\/1\.1 429 /);
  });

  test("has 401 and 403 before 429, and neither counts", async () => {
    await using gateway = await start({ perMinute: 1 });
    const refused = async () => [
      await statusOf(send(postImages, gateway, "sk-unknown")),
      await statusOf(send(postImages, gateway, "sk-speech-alone")),
      await statusOf(send(postImages, gateway, "sk-management")),
      await statusOf(send(postSpeech, gateway, "sk-management")),
    ];
    expect(await refused()).toEqual([401, 403, 403, 401]);
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(200);
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(429);
    expect(await refused()).toEqual([401, 403, 403, 401]);
  });
});

describe("requests in flight", () => {
  test("are as many as they may be, and one more is told to come again", async () => {
    await using gateway = await start({ maxInFlight: 3 });
    const { promise: held, resolve: end } = Promise.withResolvers<void>();
    behave = () => held;
    const running = await Promise.all([1, 2, 3].map(() => send(postSpeech, gateway, "sk-one")));
    expect(running.map(({ status }) => status)).toEqual([200, 200, 200]);
    const refused = await send(postSpeech, gateway, "sk-one-rotated");
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.text()).toBe(
      '{"error":{"code":429,"message":"Rate limit exceeded","metadata":{"reason":"too_many_in_flight","retry_after_s":1}}}',
    );
    expect(await statusOf(send(postImages, gateway, "sk-two"))).toBe(200);
    end();
    for (const response of running) expect(await response.text()).toBe("sound");
    await letIn(gateway);
  });

  test("end one after the other on a connection that is kept", async () => {
    await using gateway = await start({ maxInFlight: 1 });
    using connection = new RawConnection(gateway);
    const body = JSON.stringify({ input: "Hello.", model: "acme/one" });
    const request = rawSpeechRequest([`Content-Length: ${body.length}`], body);
    const answers = () => connection.received.match(/^HTTP\/1\.1 200 /gm)?.length ?? 0;
    for (const turn of [1, 2, 3]) {
      connection.send(request.replace(/Bearer \S+/, "Bearer sk-one"));
      await waitUntil(() => answers() === turn && connection.received.endsWith("0\r\n\r\n"));
    }
  });

  test("end when their client leaves", async () => {
    await using gateway = await start({ maxInFlight: 1 });
    behave = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    const leaving = new AbortController();
    const { signal } = leaving;
    await postSpeech(gateway, undefined, { headers: { authorization: "Bearer sk-one" }, signal });
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(429);
    behave = async () => undefined;
    leaving.abort();
    await letIn(gateway);
  });

  test("end when their client leaves before its body has come", async () => {
    await using gateway = await start({ maxInFlight: 1 });
    using connection = new RawConnection(gateway);
    const request = rawSpeechRequest(["Content-Length: 500"], "{");
    connection.send(request.replace(/Bearer \S+/, "Bearer sk-one"));
    await waitUntil(async () => (await statusOf(send(postSpeech, gateway, "sk-one"))) === 429);
    connection[Symbol.dispose]();
    await letIn(gateway);
  });

  test("end together with the connection on which they wait for each other", async () => {
    await using gateway = await start({ maxInFlight: 2 });
    behave = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    using connection = new RawConnection(gateway);
    const body = JSON.stringify({ input: "Hello.", model: "acme/one" });
    const request = rawSpeechRequest([`Content-Length: ${body.length}`], body);
    connection.send(request.replace(/Bearer \S+/, "Bearer sk-one").repeat(2));
    await waitUntil(() => calls === 2);
    expect(await statusOf(send(postSpeech, gateway, "sk-one"))).toBe(429);
    behave = async () => undefined;
    connection[Symbol.dispose]();
    const both = () => Promise.all([1, 2].map(() => statusOf(send(postSpeech, gateway, "sk-one"))));
    await waitUntil(async () => (await both()).every((status) => status === 200));
  });

  test("end when they fail, before their answer has begun and after", async () => {
    await using gateway = await start({ maxInFlight: 1 });
    expect(await statusOf(send(postSpeech, gateway, "sk-one", "{not JSON"))).toBe(400);
    await letIn(gateway);
    behave = () => Promise.reject(new DomainError(ErrorReason.PROVIDER_FAILED, "failed"));
    await expect(statusOf(send(postSpeech, gateway, "sk-one"))).rejects.toThrow();
    behave = async () => undefined;
    await letIn(gateway);
  });
});
