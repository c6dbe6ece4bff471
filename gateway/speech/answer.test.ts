import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type SynthesizeResponse, SynthesizeResponseSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import { createRemoteTransport } from "../../lib/rpc/client.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  bytesFrame,
  errorOf,
  finishedFrame,
  type GatewayServerOptions,
  leastSpeechBody,
  postSpeech,
  RawConnection,
  rawRequest,
  speechPath,
  startedFrame,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { startSpeechServer } from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import {
  answering,
  describeMediaAnswers,
  type Frames,
  longFrame,
  requestLine,
} from "../http/media-answer.suite.ts";

const chunk = new Uint8Array(4096).fill(7);
const request = { path: speechPath, key: testKeys.speech, body: leastSpeechBody };

/** Where the speech service runs: in this process, or behind a socket as in production. */
const places = ["in process", "behind a socket"] as const;

async function startBoth(
  place: (typeof places)[number],
  synthesize: Frames<SynthesizeResponse>,
  settings: GatewayServerOptions["settings"] = {},
) {
  const handlers = { synthesize };
  const stack = new AsyncDisposableStack();
  if (place === "in process") {
    const gateway = stack.use(await startGatewayServer({ handlers, settings }));
    return { gateway, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  }
  const speech = stack.use(await startSpeechServer({ handlers }));
  const piecewiseField = SynthesizeResponseSchema.field.audio;
  const transport = createRemoteTransport({ baseUrl: speech.baseUrl, piecewiseField });
  const gateway = stack.use(await startGatewayServer({ transport, settings }));
  return { gateway, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe.for(places)("audio from a service %s", (place) => {
  test("goes out as it comes, the first bytes before the rest is made", async () => {
    const rest = Promise.withResolvers<void>();
    await using both = await startBoth(place, async function* () {
      yield startedFrame();
      yield bytesFrame(chunk.subarray(0, 10));
      await rest.promise;
      yield bytesFrame(chunk.subarray(0, 5));
      yield finishedFrame();
    });
    const response = await postSpeech(both.gateway);
    const reader = response.body?.getReader();
    expect((await reader?.read())?.value).toHaveLength(10);
    rest.resolve();
    expect((await reader?.read())?.value).toHaveLength(5);
    expect((await reader?.read())?.done).toBe(true);
  });

  test("sends nothing before the first audio, so that a failure until then is a plain error", async () => {
    const waiting = Promise.withResolvers<void>();
    const handler = answering([startedFrame()], async () => {
      await waiting.promise;
      throw new DomainError(ErrorReason.TIMED_OUT, "too slow");
    });
    await using both = await startBoth(place, handler);
    using client = new RawConnection(both.gateway);
    client.send(rawRequest(request));
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
    await using both = await startBoth(place, answering([startedFrame(), bytesFrame(chunk)], then));
    const response = await postSpeech(both.gateway);
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow();
    using old = new RawConnection(both.gateway);
    old.send(rawRequest(request).replace("HTTP/1.1", "HTTP/1.0"));
    await waitUntil(() => old.ended);
    expect(old.reset).toBe(true);
    const line = await requestLine(both.gateway);
    expect(line).toMatchObject({ status: 200, complete: false, generation_id: "gen-tts-1" });
  });

  test.for([
    ["nothing at all", []],
    ["no audio", [startedFrame(), finishedFrame()]],
    ["audio before its start", [bytesFrame(chunk), startedFrame(), finishedFrame()]],
  ] as const)("that is %s is a fault of ours", async ([, frames]) => {
    await using both = await startBoth(place, answering(frames));
    expect(await errorOf(await postSpeech(both.gateway))).toEqual({ status: 500, reason: "internal" });
    expect(both.gateway.logged).toContainEqual(expect.objectContaining({ level: "error" }));
  });
});

describeMediaAnswers({
  places,
  request,
  start: startBoth,
  timeoutSetting: "speechTimeoutMs",
  started: startedFrame(),
  begun: [bytesFrame(chunk)],
  long: { before: [], frame: bytesFrame(new Uint8Array(longFrame.bytes)), after: [finishedFrame()] },
  expectWhole: (bytes) => expect(bytes).toBe(longFrame.bytes * longFrame.count),
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
