import { createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { type Series, scrape, sumOf } from "../../test/support/prometheus-text.ts";
import {
  audioFrame,
  type SpeechServerOptions,
  startSpeechServer,
  stockTransport,
  transportNames,
} from "../../test/support/services/speech-server.ts";
import { serverInterceptor } from "../rpc/interceptors.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { silentLog } from "../runtime/log.ts";
import { Metrics } from "./metrics.ts";
import { measureCalls } from "./metrics-calls.ts";

const calls = "rpc_server_call_duration_seconds_count";
const unary = "media.speech.v1.SpeechService/ListSpeechModels";
const streaming = "media.speech.v1.SpeechService/Synthesize";

async function start(handlers: NonNullable<SpeechServerOptions["handlers"]>) {
  const metrics = new Metrics({ log: silentLog });
  const interceptors = [serverInterceptor(silentLog, measureCalls(metrics))];
  const server = await startSpeechServer({
    metrics: metrics.answer,
    routes: (router) => router.service(SpeechService, handlers, { interceptors }),
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const client = (name: (typeof transportNames)[number]) =>
    createClient(SpeechService, stockTransport(name, server.baseUrl));
  return { client, baseUrl: server.baseUrl, read: () => scrape(server.port) };
}

function counted(series: readonly Series[]) {
  return Object.fromEntries(
    series
      .filter(({ name }) => name === calls)
      .map(({ labels, value }) => [`${labels.rpc_method} ${labels.rpc_response_status_code}`, value]),
  );
}

describe.for(transportNames)("a call by %s", (name) => {
  test("is counted once when it ends well", async () => {
    const { client, read } = await start({
      listSpeechModels: () => ({ models: [] }),
      async *synthesize() {
        yield audioFrame(1);
        yield audioFrame(1);
      },
    });
    await client(name).listSpeechModels({});
    for await (const _frame of client(name).synthesize({}));
    expect(counted(await read())).toEqual({ [`${unary} ok`]: 1, [`${streaming} ok`]: 1 });
  });

  test("is counted once with its code when it fails, before its first frame or behind it", async () => {
    const refuse = () => {
      throw new DomainError(ErrorReason.MODEL_UNKNOWN, "no such model");
    };
    const { client, read } = await start({
      listSpeechModels: refuse,
      async *synthesize() {
        yield audioFrame(1);
        throw new Error("a bug");
      },
    });
    await expect(client(name).listSpeechModels({})).rejects.toThrow();
    await expect(async () => {
      for await (const _frame of client(name).synthesize({}));
    }).rejects.toThrow();
    expect(counted(await read())).toEqual({ [`${unary} not_found`]: 1, [`${streaming} internal`]: 1 });
  });

  test("is counted as cancelled when its caller leaves amid the stream", async () => {
    const forever = Promise.withResolvers<void>();
    onTestFinished(() => forever.resolve());
    const { client, read } = await start({
      async *synthesize() {
        yield audioFrame(1);
        await forever.promise;
      },
    });
    const leaving = new AbortController();
    await expect(async () => {
      for await (const _frame of client(name).synthesize({}, { signal: leaving.signal })) leaving.abort();
    }).rejects.toThrow();
    await expect.poll(async () => counted(await read())).toEqual({ [`${streaming} canceled`]: 1 });
  });
});

test("a call that runs out of time is counted so", async () => {
  const { baseUrl, read } = await start({
    listSpeechModels: (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  // A client with a deadline of its own would cancel the call at the same moment.
  const headers = { "content-type": "application/json", "connect-timeout-ms": "50" };
  const response = await fetch(`${baseUrl}/${unary}`, { method: "POST", headers, body: "{}" });
  expect(await response.json()).toMatchObject({ code: "deadline_exceeded" });
  await expect.poll(async () => counted(await read())).toEqual({ [`${unary} deadline_exceeded`]: 1 });
  expect(sumOf(await read(), "rpc_server_call_duration_seconds_sum")).toBeGreaterThan(0.03);
});
