import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import type { HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { SynthesizeResponse } from "../../gen/media/speech/v1/speech_pb.ts";
import { createRemoteTransport } from "../../lib/rpc/client.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  bytesFrame,
  errorOf,
  finishedFrame,
  type GatewayServerOptions,
  postSpeech,
  RawConnection,
  rawSpeechRequest,
  type SpeechHandlers,
  speechPath,
  startedFrame,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { startSpeechServer } from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

const chunk = new Uint8Array(4096).fill(7);
const body = JSON.stringify({ input: "Hello.", model: "acme/one" });

/** Where the speech service runs: in this process, or behind a socket as in production. */
const places = ["in process", "behind a socket"] as const;

async function startBoth(
  place: (typeof places)[number],
  handlers: SpeechHandlers,
  settings: GatewayServerOptions["settings"] = {},
) {
  const stack = new AsyncDisposableStack();
  if (place === "in process") {
    const gateway = stack.use(await startGatewayServer({ handlers, settings }));
    return { gateway, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }
  const speech = stack.use(await startSpeechServer({ handlers }));
  const transport = createRemoteTransport({ baseUrl: speech.baseUrl });
  const gateway = stack.use(await startGatewayServer({ transport, settings }));
  return { gateway, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** A handler that yields the frames and then does what the test says. */
function synthesizing(
  frames: readonly SynthesizeResponse[],
  then: (context: HandlerContext) => Promise<void>,
) {
  return {
    async *synthesize(_request: unknown, context: HandlerContext) {
      yield* frames;
      await then(context);
    },
  };
}

function neverEnding(context: HandlerContext): Promise<void> {
  return new Promise((_resolve, reject) => {
    context.signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

function rawBody(): string {
  return rawSpeechRequest([`Content-Length: ${body.length}`], body);
}

describe.for(places)("audio from a service %s", (place) => {
  test("goes out as it comes, the first bytes before the rest is made", async () => {
    const rest = Promise.withResolvers<void>();
    const handlers = {
      async *synthesize() {
        yield startedFrame();
        yield bytesFrame(chunk.subarray(0, 10));
        await rest.promise;
        yield bytesFrame(chunk.subarray(0, 5));
        yield finishedFrame();
      },
    };
    await using both = await startBoth(place, handlers);
    const response = await postSpeech(both.gateway);
    const reader = response.body?.getReader();
    expect((await reader?.read())?.value).toHaveLength(10);
    rest.resolve();
    expect((await reader?.read())?.value).toHaveLength(5);
    expect((await reader?.read())?.done).toBe(true);
  });

  test("sends nothing before the first audio, so that a failure until then is a plain error", async () => {
    const waiting = Promise.withResolvers<void>();
    const handlers = synthesizing([startedFrame()], async () => {
      await waiting.promise;
      throw new DomainError(ErrorReason.TIMED_OUT, "too slow");
    });
    await using both = await startBoth(place, handlers);
    using client = new RawConnection(both.gateway);
    client.send(rawBody());
    waiting.resolve();
    await waitUntil(() => client.received.includes('"timed_out"'));
    expect(client.received).toMatch(/^HTTP\/1\.1 524 /);
    expect(client.received).toContain("x-generation-id: gen-tts-1\r\n");
  });

  const failing = async (): Promise<void> => {
    throw new DomainError(ErrorReason.PROVIDER_FAILED, "broke");
  };

  test.for([
    ["an error", failing],
    ["an end without `finished`", async (): Promise<void> => undefined],
  ] as const)("is cut after its first byte by %s, and never looks whole", async ([, then]) => {
    await using both = await startBoth(place, synthesizing([startedFrame(), bytesFrame(chunk)], then));
    const response = await postSpeech(both.gateway);
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow();
    using old = new RawConnection(both.gateway);
    old.send(rawBody().replace("HTTP/1.1", "HTTP/1.0"));
    await waitUntil(() => old.ended);
    expect(old.reset).toBe(true);
    const line = await waitUntil(() => both.gateway.logged.find(({ msg }) => msg === "request"));
    expect(line).toMatchObject({ status: 200, complete: false, generation_id: "gen-tts-1" });
  });

  test.for([
    ["nothing at all", []],
    ["no audio", [startedFrame(), finishedFrame()]],
    ["audio before its start", [bytesFrame(chunk), startedFrame(), finishedFrame()]],
  ] as const)("that is %s is a fault of ours", async ([, frames]) => {
    await using both = await startBoth(
      place,
      synthesizing(frames, async () => undefined),
    );
    expect(await errorOf(await postSpeech(both.gateway))).toEqual({ status: 500, reason: "internal" });
    expect(both.gateway.logged).toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test.for([
    ["before the first byte", [startedFrame()]],
    ["in the middle", [startedFrame(), bytesFrame(chunk)]],
  ] as const)("is cancelled at the service when the client leaves %s", async ([, frames]) => {
    let aborted = false;
    let waiting = false;
    const handlers = synthesizing(frames, async (context) => {
      waiting = true;
      await neverEnding(context).catch(() => {
        aborted = true;
      });
    });
    await using both = await startBoth(place, handlers);
    const client = new RawConnection(both.gateway);
    client.send(rawBody());
    await waitUntil(() => waiting && (frames.length === 1 || client.received.includes("\r\n\r\n")));
    client[Symbol.dispose]();
    await waitUntil(() => aborted);
    const line = await waitUntil(() => both.gateway.logged.find(({ msg }) => msg === "request"));
    expect(line).toMatchObject({ complete: false, reason: "cancelled" });
    expect(both.gateway.logged).not.toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test("ends at the deadline: 524 while nothing has gone out, a cut connection after that", async () => {
    const settings = { speechTimeoutMs: 100 };
    await using silent = await startBoth(place, synthesizing([startedFrame()], neverEnding), settings);
    expect(await errorOf(await postSpeech(silent.gateway))).toEqual({ status: 524, reason: "timed_out" });
    const handlers = synthesizing([startedFrame(), bytesFrame(chunk)], neverEnding);
    await using begun = await startBoth(place, handlers, settings);
    await expect(postSpeech(begun.gateway).then((response) => response.arrayBuffer())).rejects.toThrow();
  });
});

describe.for(places)("a client that takes nothing from a service %s", (place) => {
  const frameBytes = 256 * 1024;
  const frameCount = 400;

  /** A service with 100 MiB to say; counts what it was asked for. */
  function talkative() {
    const state = { produced: 0, aborted: false };
    const handlers: SpeechHandlers = {
      async *synthesize(_request, context) {
        context.signal.addEventListener("abort", () => {
          state.aborted = true;
        });
        yield startedFrame();
        const frame = new Uint8Array(frameBytes);
        for (; state.produced < frameCount; state.produced++) yield bytesFrame(frame);
        yield finishedFrame();
      },
    };
    return { state, handlers };
  }

  async function pausedClient(port: number): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${testKeys.speech}`, "content-type": "application/json" };
    const sent = httpRequest({ port, host: "127.0.0.1", path: speechPath, method: "POST", headers });
    sent.on("error", () => undefined);
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    return response;
  }

  test("makes the service wait, and gets all of it once it reads on", async () => {
    const { state, handlers } = talkative();
    await using both = await startBoth(place, handlers);
    const response = await pausedClient(both.gateway.port);
    let before = -1;
    await waitUntil(
      () => {
        const settled = state.produced === before;
        before = state.produced;
        return settled && before > 0;
      },
      { intervalMs: 100 },
    );
    expect(state.produced * frameBytes).toBeLessThan(50 << 20);
    let bytes = 0;
    for await (const part of response) bytes += (part as Buffer).byteLength;
    expect(bytes).toBe(frameCount * frameBytes);
    expect(response.complete).toBe(true);
  });

  test("is cut after its time, and the service hears of it", async () => {
    const { state, handlers } = talkative();
    await using both = await startBoth(place, handlers, { clientStallTimeoutMs: 100 });
    const response = await pausedClient(both.gateway.port);
    await waitUntil(() => state.aborted);
    expect(state.produced).toBeLessThan(frameCount);
    response.resume();
    await waitUntil(() => response.destroyed);
    expect(response.complete).toBe(false);
    const line = await waitUntil(() => both.gateway.logged.find(({ msg }) => msg === "request"));
    expect(line).toMatchObject({ complete: false, reason: "timed_out" });
  });

  test("is cut at the deadline of the whole request", async () => {
    const { state, handlers } = talkative();
    await using both = await startBoth(place, handlers, { speechTimeoutMs: 300 });
    const response = await pausedClient(both.gateway.port);
    const line = await waitUntil(() => both.gateway.logged.find(({ msg }) => msg === "request"));
    expect(line).toMatchObject({ complete: false, reason: "timed_out" });
    expect(state.aborted).toBe(true);
    response.resume();
    await waitUntil(() => response.destroyed);
    expect(response.complete).toBe(false);
  });
});

test("a service that can't be reached is one that is temporarily unavailable", async () => {
  const speech = await startSpeechServer();
  await speech[Symbol.asyncDispose]();
  await using gateway = await startGatewayServer({
    transport: createRemoteTransport({ baseUrl: speech.baseUrl }),
  });
  expect(await errorOf(await postSpeech(gateway))).toEqual({ status: 503, reason: "service_unavailable" });
});

test("a service that dies before its first byte is one that is temporarily unavailable", async () => {
  const dying = createServer((socket) => {
    socket.on("error", () => undefined).once("data", () => socket.destroy());
  });
  await once(dying.listen(0, "127.0.0.1"), "listening");
  const { port } = dying.address() as AddressInfo;
  const transport = createRemoteTransport({ baseUrl: `http://127.0.0.1:${port}` });
  await using gateway = await startGatewayServer({ transport });
  expect(await errorOf(await postSpeech(gateway))).toEqual({ status: 503, reason: "service_unavailable" });
  dying.close();
});
