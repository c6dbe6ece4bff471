import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  ListSpeechModelsRequestSchema,
  ListSpeechModelsResponseSchema,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import {
  audioFrame,
  audioLength,
  type SpeechServer,
  startSpeechServer,
  stockTransport,
  transportNames,
} from "../../test/support/services/speech-server.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { StartError } from "../runtime/start-error.ts";

const listPath = "/media.speech.v1.SpeechService/ListSpeechModels";
const synthesizePath = "/media.speech.v1.SpeechService/Synthesize";

describe.for(transportNames)("%s on the one port", (name) => {
  test("carries a unary call", async () => {
    await using server = await startSpeechServer();
    const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
    expect((await client.listSpeechModels({})).models[0]?.id).toBe("acme/one");
  });

  test("carries a stream frame by frame", async () => {
    await using server = await startSpeechServer({
      handlers: {
        async *synthesize() {
          for (let length = 1; length <= 5; length += 1) yield audioFrame(length);
        },
      },
    });
    const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
    const lengths: number[] = [];
    for await (const response of client.synthesize({ input: "Hello" })) lengths.push(audioLength(response));
    expect(lengths).toEqual([1, 2, 3, 4, 5]);
  });

  test("carries an error with its detail, before and after the first frame", async () => {
    const failure = new DomainError(ErrorReason.RATE_LIMITED, "too many requests", { retryAfterMs: 1500 });
    await using server = await startSpeechServer({
      handlers: {
        listSpeechModels: () => Promise.reject(failure),
        async *synthesize() {
          yield audioFrame(1);
          throw failure;
        },
      },
    });
    const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
    const unary = await client.listSpeechModels({}).catch((thrown: unknown) => thrown);
    const frames: number[] = [];
    const streamed = await collect(client.synthesize({}), frames).catch((thrown: unknown) => thrown);
    expect(frames).toEqual([1]);
    for (const thrown of [unary, streamed]) {
      expect(ConnectError.from(thrown).code).toBe(Code.ResourceExhausted);
      expect(DomainError.from(thrown)).toMatchObject({
        reason: ErrorReason.RATE_LIMITED,
        retryAfterMs: 1500,
      });
    }
  });
});

async function collect(responses: AsyncIterable<Parameters<typeof audioLength>[0]>, into: number[]) {
  for await (const response of responses) into.push(audioLength(response));
}

describe("clients that are not ours", () => {
  test("call over gRPC with grpc-js", async () => {
    await using server = await startSpeechServer();
    const client = new grpc.Client(`localhost:${server.port}`, grpc.credentials.createInsecure());
    const answer = await new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        listPath,
        (request: Uint8Array) => Buffer.from(request),
        (bytes: Buffer) => fromBinary(ListSpeechModelsResponseSchema, bytes),
        toBinary(ListSpeechModelsRequestSchema, {} as never),
        (error, response) => (error === null ? resolve(response) : reject(error)),
      );
    }).finally(() => client.close());
    expect(answer).toMatchObject({ models: [{ id: "acme/one" }] });
  });

  test("call with plain JSON, by POST and for reads by GET", async () => {
    await using server = await startSpeechServer();
    const posted = await fetch(`${server.baseUrl}${listPath}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(posted.status).toBe(200);
    expect(await posted.json()).toMatchObject({ models: [{ id: "acme/one" }] });
    const got = await fetch(`${server.baseUrl}${listPath}?encoding=json&message=%7B%7D&connect=v1`);
    expect(await got.json()).toMatchObject({ models: [{ id: "acme/one" }] });
    const written = await fetch(`${server.baseUrl}${synthesizePath}?encoding=json&message=%7B%7D`);
    expect(written.status).toBe(405);
  });

  test("get 404 for what is no RPC, over both protocols", async () => {
    await using server = await startSpeechServer();
    const response = await fetch(`${server.baseUrl}/favicon.ico`);
    expect([response.status, response.headers.get("content-type")]).toEqual([404, "application/json"]);
    expect(await getOverHttp2(server, "/favicon.ico")).toBe(404);
    expect(await getOverHttp2(server, "/healthz")).toBe(200);
  });

  test("get CORS answers for allowed origins alone", async () => {
    await using server = await startSpeechServer({ corsOrigins: ["https://app.example"] });
    const preflight = (origin: string) =>
      fetch(`${server.baseUrl}${listPath}`, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST" },
      });
    const allowed = await preflight("https://app.example");
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(allowed.headers.get("access-control-allow-headers")).toMatch(/Authorization/);
    const refused = await preflight("https://other.example");
    expect(refused.headers.get("access-control-allow-origin")).toBeNull();
    expect(refused.headers.get("vary")).toBe("Origin");
  });
});

async function getOverHttp2(server: SpeechServer, path: string): Promise<number | undefined> {
  const session = connectHttp2(server.baseUrl);
  const [headers] = (await once(session.request({ ":path": path }), "response")) as [Record<string, number>];
  session.close();
  return headers[":status"];
}

describe("request ids", () => {
  test("are the caller's when valid, else new, and come back with the answer", async () => {
    await using server = await startSpeechServer();
    const client = createClient(SpeechService, stockTransport("Connect over HTTP/1.1", server.baseUrl));
    const idFor = async (offered: string) => {
      let id: string | null = null;
      await client.listSpeechModels(
        {},
        { headers: { "x-request-id": offered }, onHeader: (header) => (id = header.get("x-request-id")) },
      );
      return id;
    };
    expect(await idFor("trace-1:2")).toBe("trace-1:2");
    expect(await idFor("no blanks allowed")).toMatch(/^req-[0-9a-f-]{36}$/);
    expect(await idFor("x".repeat(129))).toMatch(/^req-/);
  });
});

describe("message limits", () => {
  const limits = { readMaxBytes: 64 << 10, writeMaxBytes: 64 << 10 };

  test.for(transportNames)("refuse a larger request over %s and keep the server usable", async (name) => {
    await using server = await startSpeechServer({ limits });
    const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
    const refused = client
      .synthesize({ input: "x".repeat(100 << 10) })
      [Symbol.asyncIterator]()
      .next();
    await expect(refused).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect((await client.listSpeechModels({})).models).toHaveLength(1);
  });

  test("leave an HTTP/1.1 connection usable after a refusal", async () => {
    await using server = await startSpeechServer({ limits });
    const agent = new CountingAgent({ keepAlive: true, maxSockets: 1 });
    const client = createClient(Health, stockTransport("Connect over HTTP/1.1", server.baseUrl, { agent }));
    for (let call = 0; call < 3; call += 1) {
      const refused = client.check({ service: "x".repeat(100 << 10) });
      await expect(refused).rejects.toMatchObject({ code: Code.ResourceExhausted });
      await client.check({});
    }
    expect(agent.opened).toBe(1);
  });

  test.for(transportNames)("refuse a larger answer over %s", async (name) => {
    await using server = await startSpeechServer({
      limits,
      handlers: {
        async *synthesize() {
          yield audioFrame(1);
          yield audioFrame(100 << 10);
        },
      },
    });
    const client = createClient(SpeechService, stockTransport(name, server.baseUrl));
    const lengths: number[] = [];
    const refused = collect(client.synthesize({}), lengths);
    await expect(refused).rejects.toMatchObject({ code: Code.ResourceExhausted });
    expect(lengths).toEqual([1]);
  });

  test("refuse a frame by its announced length, before any of it is there", async () => {
    await using server = await startSpeechServer({ limits });
    const request = httpRequest(`${server.baseUrl}${synthesizePath}`, {
      method: "POST",
      headers: { "content-type": "application/connect+proto" },
    });
    request.on("error", () => undefined);
    request.write(Buffer.from([0, 0x60, 0, 0, 0]));
    const [response] = (await once(request, "response")) as [AsyncIterable<Buffer>];
    let body = "";
    for await (const chunk of response) body += chunk.toString();
    request.destroy();
    expect(body).toContain('"code":"resource_exhausted"');
  });
});

/** Counts the connections it opens. */
class CountingAgent extends Agent {
  opened = 0;

  override createConnection(...parameters: Parameters<Agent["createConnection"]>) {
    this.opened += 1;
    return super.createConnection(...parameters);
  }
}

describe("the port", () => {
  test("that is in use makes the start fail with the name of its variable", async () => {
    await using server = await startSpeechServer();
    const second = startSpeechServer({ port: server.port });
    await expect(second).rejects.toThrow(
      new StartError(`PORT ${server.port} on 127.0.0.1 is in use; set another one`),
    );
  });
});
