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
} from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type Caller, callerKey } from "../identity/caller.ts";
import { callLifeOf } from "../rpc/call-life.ts";
import { createLocalTransport } from "../rpc/client.ts";
import { serverInterceptor } from "../rpc/interceptors.ts";
import type { RegisterRoutes } from "../rpc/registered-method.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { silentLog } from "../runtime/log.ts";
import { LoopDelay } from "../runtime/loop-delay.ts";
import { admissionIdHeader } from "./admission-id.ts";
import { createLimitInterceptor } from "./limit-interceptor.ts";
import { limitedRequest, type RequestLimiter } from "./limiter.ts";
import { LoadShedder } from "./load-shedder.ts";
import { LocalLimiter } from "./local-limiter.ts";

const principal = create(PrincipalSchema, { rateBucket: "ab".repeat(32), rateLimitPerMinute: 1000 });
const direct: Caller = { kind: "key", principal };
const places = [...transportNames, "in this process"] as const;

let limiter: RequestLimiter;
let caller: Caller;
/** Carries one request at a time where the limiter lets more in. */
const shedder = new LoadShedder({
  maxInFlight: 1,
  maxDelayMs: Number.MAX_SAFE_INTEGER,
  maxWaiting: 0,
  loopDelay: new LoopDelay(),
});
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
          limiter: {
            admit: (...request) => limiter.admit(...request),
            enter: (...request) => limiter.enter(...request),
            close: () => limiter.close(),
          },
          shedder,
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

/** Reads an answer to its end, announcing its first frame. */
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
  test("is the key's own, and answered with when to come again", async () => {
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

describe("a call that a process makes for a caller", () => {
  const acting: Caller = { kind: "process", issuer: "gateway", principal };
  const named = (id: string) => ({ headers: { [admissionIdHeader]: id } });

  beforeEach(() => {
    caller = acting;
  });

  test("goes on under the id that it names, and counts once with where it came in", async () => {
    const { promise: held, resolve: end } = Promise.withResolvers<void>();
    behave = () => held;
    const speech = speechAt("Connect over HTTP/1.1");
    const admitted = await limiter.admit(limitedRequest(principal));
    const { promise: began, resolve: onFrame } = Promise.withResolvers<void>();
    const call = readAll(speech.synthesize({}, named(admitted.id)), onFrame);
    await began;
    admitted.release();
    expect((await refusal(readAll(speech.synthesize({}, named("another"))))).code).toBe(
      Code.ResourceExhausted,
    );
    end();
    await call;
    await nothingInFlight();
  });

  test.for([["without an id"], ["with none of ours"]])("takes a place of its own %s", async ([how]) => {
    const { release } = await limiter.admit(limitedRequest(principal));
    const headers = how === "without an id" ? undefined : named("x".repeat(65));
    const error = await refusal(readAll(speechAt("Connect over HTTP/1.1").synthesize({}, headers)));
    expect(DomainError.from(error).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    release();
  });

  test("is not limited a minute anew", async () => {
    const speech = speechAt("Connect over HTTP/1.1");
    for (const _ of [1, 2, 3]) {
      await readAll(speech.synthesize({}));
      await nothingInFlight();
    }
  });

  test("is not believed when a program makes it", async () => {
    caller = direct;
    const { id, release } = await limiter.admit(limitedRequest(principal));
    const error = await refusal(readAll(speechAt("Connect over HTTP/1.1").synthesize({}, named(id))));
    expect(DomainError.from(error).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    release();
  });
});

describe("work that goes on after its caller left", () => {
  test.for<[string, Caller]>([
    ["a program", direct],
    ["a process", { kind: "process", issuer: "gateway", principal }],
  ])("is in flight until it is done: %s", async ([, who]) => {
    caller = who;
    const { promise: work, resolve: done } = Promise.withResolvers<void>();
    const { promise: kept, resolve: keeping } = Promise.withResolvers<void>();
    behave = (context) => {
      callLifeOf(context.values).keepUntil(work);
      keeping();
      return untilAborted(context);
    };
    const speech = speechAt("gRPC");
    const leaving = new AbortController();
    const call = refusal(readAll(speech.synthesize({}, { signal: leaving.signal })));
    await kept;
    leaving.abort();
    await call;
    const another = await refusal(readAll(speech.synthesize({})));
    expect(DomainError.from(another).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    done();
    await nothingInFlight();
  });
});

describe("a process that can carry no more", () => {
  test("refuses whom it has not let in, with when to come again, whoever calls", async () => {
    limiter = new LocalLimiter({ limits: { perMinute: 100, maxInFlight: 100 } });
    const { promise: held, resolve: end } = Promise.withResolvers<void>();
    behave = () => held;
    const speech = speechAt("gRPC");
    const { promise: began, resolve: onFrame } = Promise.withResolvers<void>();
    const first = readAll(speech.synthesize({}), onFrame);
    await began;
    for (const who of [direct, { kind: "process", issuer: "gateway", principal } as const]) {
      caller = who;
      const error = await refusal(readAll(speech.synthesize({})));
      expect(error.code).toBe(Code.Unavailable);
      const { reason, retryAfterMs = 0 } = DomainError.from(error);
      expect(reason).toBe(ErrorReason.OVERLOADED);
      expect(retryAfterMs).toBeGreaterThanOrEqual(1000);
    }
    end();
    await first;
    await waitUntil(() => shedder.running === 0);
    await nothingInFlight();
  });
});

describe("no limit", () => {
  test.for<[string, Caller]>([
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
