import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import {
  audioFrame,
  audioLength,
  startSpeechServer,
  stockTransport,
  transportNames,
} from "../../test/support/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

/** A stream of three frames that stops after the first one until the gate opens. */
function gatedStream() {
  const gate = Promise.withResolvers<void>();
  const handlers = {
    async *synthesize() {
      yield audioFrame(1);
      await gate.promise;
      yield audioFrame(2);
      yield audioFrame(3);
    },
  };
  return { open: gate.resolve, handlers };
}

describe("draining", () => {
  test("lets a running stream of each transport finish, and ends when the last one has", async () => {
    const stream = gatedStream();
    const server = await startSpeechServer({ handlers: stream.handlers });
    const running = transportNames.map((name) => {
      const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
      return { client, frames: client.synthesize({})[Symbol.asyncIterator]() };
    });
    for (const { frames } of running) expect((await frames.next()).done).toBe(false);

    let drained = false;
    const drain = server.drain({ delayMs: 0, timeoutMs: 60_000 }).then(() => {
      drained = true;
    });
    for (const { client } of running) {
      await expect(client.listSpeechModels({})).rejects.toMatchObject({ code: Code.Unavailable });
    }
    expect(drained).toBe(false);
    stream.open();
    for (const { frames } of running) {
      const rest = [await frames.next(), await frames.next()].map(({ value }) => value && audioLength(value));
      expect(rest).toEqual([2, 3]);
      expect((await frames.next()).done).toBe(true);
    }
    await drain;
  });

  test("cuts what still runs at its limit", async () => {
    const server = await startSpeechServer({ handlers: gatedStream().handlers });
    const running = transportNames.map((name) => {
      const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
      return client.synthesize({})[Symbol.asyncIterator]();
    });
    for (const frames of running) await frames.next();
    await server.drain({ delayMs: 0, timeoutMs: 30 });
    for (const frames of running) await expect(frames.next()).rejects.toThrow();
  });

  test("serves during its delay, says that it is not ready and asks clients to leave", async () => {
    const server = await startSpeechServer();
    const agent = new Agent({ keepAlive: true });
    const client = createClient(SpeechService, stockTransport("gRPC", server.baseUrl));
    expect(await get(`${server.baseUrl}/readyz`, agent)).toEqual({ status: 200, connection: "keep-alive" });

    let drained = false;
    const delay = Promise.withResolvers<void>();
    const drain = server.drain({ delayMs: 300, timeoutMs: 60_000 }).then(() => {
      drained = true;
      delay.resolve();
    });
    expect(await get(`${server.baseUrl}/readyz`, agent)).toEqual({ status: 503, connection: "close" });
    expect((await client.listSpeechModels({})).models).toHaveLength(1);
    expect(drained).toBe(false);
    await drain;
    await expect(get(`${server.baseUrl}/readyz`, agent)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("is not held up by clients that watch its health", async () => {
    const server = await startSpeechServer();
    const watching = createClient(Health, stockTransport("gRPC", server.baseUrl));
    const seen: number[] = [];
    const watch = (async () => {
      for await (const { status } of watching.watch({})) seen.push(status);
    })();
    await waitUntil(() => seen.length === 1);
    await server.drain({ delayMs: 0, timeoutMs: 60_000 });
    await watch;
    expect(seen).toEqual([1, 2]);
  });

  test("ends HTTP/1.1 connections whose last answer began before it", async () => {
    const stream = gatedStream();
    const server = await startSpeechServer({ handlers: stream.handlers });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const transport = stockTransport("Connect over HTTP/1.1", server.baseUrl, { agent });
    const frames = createClient(SpeechService, transport).synthesize({})[Symbol.asyncIterator]();
    await frames.next();
    const drain = server.drain({ delayMs: 0, timeoutMs: 60_000 });
    stream.open();
    while ((await frames.next()).done !== true);
    await drain;
    await waitUntil(() => Object.keys(agent.freeSockets).length === 0);
  });
});

async function get(url: string, agent: Agent) {
  const request = httpRequest(url, { agent }).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return { status: response.statusCode, connection: response.headers.connection };
}
