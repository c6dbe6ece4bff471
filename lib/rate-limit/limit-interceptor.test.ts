import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type HandlerContext, type Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import {
  audioFrame,
  type SpeechServer,
  startSpeechServer,
  stockTransport,
  transportNames,
} from "../../test/support/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type Caller, callerKey } from "../identity/caller.ts";
import { createLocalTransport } from "../runtime/client.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { serverInterceptor } from "../runtime/interceptors.ts";
import { silentLog } from "../runtime/log.ts";
import type { RegisterRoutes } from "../runtime/rpc-handler.ts";
import { createLimitInterceptor } from "./limit-interceptor.ts";
import type { RequestLimiter } from "./limiter.ts";
import { LocalLimiter } from "./local-limiter.ts";

const principal = create(PrincipalSchema, { rateBucket: "ab".repeat(32), rateLimitPerMinute: 1000 });
const direct: Caller = { kind: "key", principal };
const places = [...transportNames, "in this process"] as const;

let limiter: RequestLimiter;
let caller: Caller;
/** What the handler does behind its first frame. */
let behave: (context: HandlerContext) => Promise<void>;
let server: SpeechServer;

const routes: RegisterRoutes = (router) =>
  router.service(
    SpeechService,
    {
      listSpeechModels: () => ({ models: [] }),
      async *synthesize(_request, context) {
        yield audioFrame(1);
        await behave(context);
        yield audioFrame(1);
      },
    },
    {
      interceptors: [
        serverInterceptor(silentLog),
        (next) => (request) => {
          request.contextValues.set(callerKey, caller);
          return next(request);
        },
        createLimitInterceptor({
          limiter: { admit: (...request) => limiter.admit(...request), close: () => limiter.close() },
          methods: [SpeechService.method.synthesize],
        }),
      ],
    },
  );

beforeAll(async () => {
  server = await startSpeechServer({ routes });
});

beforeEach(() => {
  limiter = new LocalLimiter({ limits: { perMinute: 1, maxInFlight: 1 } });
  caller = direct;
  behave = async () => undefined;
});

afterAll(() => server[Symbol.asyncDispose]());

function transportTo(place: (typeof places)[number]): Transport {
  return place === "in this process" ? createLocalTransport(routes) : stockTransport(place, server.baseUrl);
}

function speechAt(place: (typeof places)[number]) {
  return createClient(SpeechService, transportTo(place));
}

/** Reads an answer to its end, telling of its first frame. */
async function readAll(frames: AsyncIterable<unknown>, onFrame: () => void = () => undefined): Promise<void> {
  for await (const _ of frames) onFrame();
}

function untilAborted({ signal }: HandlerContext): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Resolves once nothing of the caller is in flight any more. */
function nothingInFlight(): Promise<unknown> {
  return waitUntil(async () => {
    const { release } = await limiter.admit({ bucket: principal.rateBucket, perMinute: 1_000_000 });
    release();
    return true;
  });
}

async function refusal(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(() => Promise.reject(new Error("it was admitted")), ConnectError.from);
}

describe.for(places)("a direct call over %s", (place) => {
  test("is refused while another one of its bucket runs, and let in when that has ended", async () => {
    const { promise: held, resolve: end } = Promise.withResolvers<void>();
    behave = () => held;
    const speech = speechAt(place);
    const { promise: began, resolve: onFrame } = Promise.withResolvers<void>();
    const first = readAll(speech.synthesize({}), onFrame);
    await began;
    const error = await refusal(readAll(speech.synthesize({})));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(DomainError.from(error)).toMatchObject({
      reason: ErrorReason.TOO_MANY_IN_FLIGHT,
      retryAfterMs: 1000,
    });
    end();
    await first;
    await nothingInFlight();
  });

  test("counts no more when it has failed", async () => {
    behave = () => Promise.reject(new DomainError(ErrorReason.PROVIDER_FAILED, "failed"));
    await refusal(readAll(speechAt(place).synthesize({})));
    await nothingInFlight();
  });

  test("counts no more when it was cancelled", async () => {
    behave = untilAborted;
    const leaving = new AbortController();
    const call = readAll(speechAt(place).synthesize({}, { signal: leaving.signal }), () => leaving.abort());
    await refusal(call);
    await nothingInFlight();
  });

  test("counts no more when its deadline has passed", async () => {
    behave = untilAborted;
    await refusal(readAll(speechAt(place).synthesize({}, { timeoutMs: 300 })));
    await nothingInFlight();
  });
});

describe("the limit a minute of direct calls", () => {
  test("is the key's own, and told with when to come again", async () => {
    limiter = new LocalLimiter({ limits: { perMinute: 1, maxInFlight: 64 } });
    caller = { kind: "key", principal: { ...principal, rateLimitPerMinute: 3 } };
    const speech = speechAt("gRPC");
    for (const _ of [1, 2, 3]) await readAll(speech.synthesize({}));
    const error = await refusal(readAll(speech.synthesize({})));
    expect(error.code).toBe(Code.ResourceExhausted);
    const { reason, retryAfterMs = 0 } = DomainError.from(error);
    expect(reason).toBe(ErrorReason.RATE_LIMITED);
    expect(retryAfterMs).toBeGreaterThan(1000);
  });
});

describe("no limit", () => {
  test.for<[string, Caller]>([
    ["a process that acts for a caller", { kind: "process", issuer: "gateway", principal }],
    ["a process", { kind: "process", issuer: "gateway" }],
    ["an operator", { kind: "operator", subject: "someone" }],
  ])("holds for %s", async ([, other]) => {
    caller = other;
    const speech = speechAt("Connect over HTTP/1.1");
    for (const _ of [1, 2, 3]) await readAll(speech.synthesize({}));
  });

  test("holds for RPCs that are not listed", async () => {
    const speech = speechAt("Connect over HTTP/1.1");
    for (const _ of [1, 2, 3]) await speech.listSpeechModels({});
    await readAll(speech.synthesize({}));
  });
});
