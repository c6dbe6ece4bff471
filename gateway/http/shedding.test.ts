import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { LoadShedder } from "../../lib/rate-limit/load-shedder.ts";
import { LocalLimiter } from "../../lib/rate-limit/local-limiter.ts";
import { LoopDelay } from "../../lib/runtime/loop-delay.ts";
import {
  imageFinished,
  imageStarted,
  postImages,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import {
  bytesFrame,
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

const maxInFlight = 3;
/** What the speech service waits for behind its first frame. */
let held: Promise<void>;
let end: () => void;
let shedder: LoadShedder;

beforeEach(() => {
  ({ promise: held, resolve: end } = Promise.withResolvers<void>());
});

function start({ perMinute = 1000, maxWaiting = 0 } = {}): Promise<GatewayServer> {
  const limiter = new LocalLimiter({ limits: { perMinute, maxInFlight: 1000 } });
  const maxDelayMs = Number.MAX_SAFE_INTEGER;
  const loopDelay = new LoopDelay();
  shedder = new LoadShedder({ maxInFlight, maxWaiting, maxDelayMs, maxWaitMs: 60_000, loopDelay });
  return startGatewayServer({
    admissions: [limitRequests(limiter, shedder)],
    authenticate: async () => {
      const scopes = [KeyScope.SPEECH, KeyScope.IMAGES];
      return create(PrincipalSchema, { rateBucket: "a", keyKind: KeyKind.INFERENCE, scopes });
    },
    handlers: {
      listSpeechModels: () => ({ models: [] }),
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(Buffer.from("sound"));
        await held;
        yield bytesFrame(Buffer.from(" and more"));
        yield finishedFrame();
      },
    },
    imageHandlers: {
      listImageModels: () => ({ models: [] }),
      async *generate() {
        yield imageStarted();
        yield* wholeImage(0, Buffer.from("picture"));
        yield imageFinished();
      },
    },
  });
}

describe("a gateway that can carry no more", () => {
  test("refuses speech with 503 and images with 529 at once, and finishes what it let in", async () => {
    await using gateway = await start();
    const running = await Promise.all([1, 2, 3].map(() => postSpeech(gateway)));
    for (const [post, status, message] of [
      [postSpeech, 503, "Service temporarily unavailable"],
      [postImages, 529, "Provider returned error"],
    ] as const) {
      const refused = await post(gateway);
      const retryAfter = Number(refused.headers.get("retry-after"));
      expect([1, 2, 3]).toContain(retryAfter);
      expect([refused.status, await refused.json()]).toEqual([
        status,
        { error: { code: status, message, metadata: { reason: "overloaded", retry_after_s: retryAfter } } },
      ]);
    }
    end();
    for (const response of running) expect(await response.text()).toBe("sound and more");
    await waitUntil(() => shedder.running === 0);
    expect((await postImages(gateway)).status).toBe(200);
  });

  test("goes on with all else", async () => {
    await using gateway = await start();
    const running = await Promise.all([1, 2, 3].map(() => postSpeech(gateway)));
    const headers = { authorization: "Bearer any" };
    for (const path of ["/api/v1/models", "/api/v1/images/models", "/api/v1/openapi.json", "/healthz"])
      expect((await fetch(gateway.baseUrl + path, { headers })).status, path).toBe(200);
    end();
    for (const response of running) await response.text();
  });

  test("reads no body of what it refuses, and says 429 first to whom it has too much of", async () => {
    await using gateway = await start({ perMinute: maxInFlight + 1 });
    const running = await Promise.all([1, 2, 3].map(() => postSpeech(gateway)));
    using connection = new RawConnection(gateway);
    connection.send(rawSpeechRequest(["Content-Length: 500", "Expect: 100-continue"]));
    await waitUntil(() => connection.received.includes("overloaded"));
    expect(connection.received).toMatch(/^HTTP\/1\.1 503 /);
    expect((await postSpeech(gateway)).status).toBe(429);
    end();
    for (const response of running) await response.text();
  });

  test("lets those wait who are few, in their order", async () => {
    await using gateway = await start({ maxWaiting: 1 });
    const running = await Promise.all([1, 2, 3].map(() => postSpeech(gateway)));
    const waiting = postImages(gateway);
    await waitUntil(async () => {
      const { status, body } = await postImages(gateway);
      await body?.cancel();
      return status === 529;
    });
    end();
    expect((await waiting).status).toBe(200);
    for (const response of running) expect(await response.text()).toBe("sound and more");
  });
});
