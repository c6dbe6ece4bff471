import { brotliCompressSync, gzipSync } from "node:zlib";
import { create, type DescMessage, type DescMethod, toBinary, toJson } from "@bufbuild/protobuf";
import { Code, type Interceptor } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  ListSpeechModelsRequestSchema,
  type SynthesizeRequest,
  SynthesizeRequestSchema,
} from "../../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import {
  bodyOf,
  encodingHeaderOf,
  nameOfWire,
  openCall,
  type RpcWire,
  rpcWires,
} from "../../../test/support/rpc-wire.ts";
import {
  audioFrame,
  type SpeechServer,
  startSpeechServer,
} from "../../../test/support/services/speech-server.ts";
import { createLog } from "../../runtime/log.ts";
import { serverInterceptor } from "../interceptors.ts";
import { byteHolderKey } from "../request-context.ts";
import type { RpcServerOptions } from "../server.ts";

const { listSpeechModels, synthesize } = SpeechService.method;
const methods: readonly DescMethod[] = [listSpeechModels, synthesize];

interface TestServer extends SpeechServer {
  readonly requests: SynthesizeRequest[];
  readonly logLines: Record<string, unknown>[];
}

/** Whoever a request's header `x-holder` names holds its bytes. */
const named: Interceptor = (next) => (request) => {
  request.contextValues.set(byteHolderKey, request.header.get("x-holder") ?? "");
  return next(request);
};

async function start(options: Partial<RpcServerOptions> = {}): Promise<TestServer> {
  const requests: SynthesizeRequest[] = [];
  const logLines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void logLines.push(JSON.parse(line)) };
  const log = createLog({ name: "test", level: "info", destination });
  const server = await startSpeechServer({
    routes: (router) =>
      router.service(
        SpeechService,
        {
          listSpeechModels: () => ({ models: [] }),
          async *synthesize(request) {
            requests.push(request);
            yield audioFrame(1);
          },
        },
        { interceptors: [serverInterceptor(log), named] },
      ),
    ...options,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { ...server, requests, logLines };
}

function encode<S extends DescMessage>(
  { codec }: RpcWire,
  schema: S,
  message: Parameters<typeof create<S>>[1],
): Buffer {
  const made = create(schema, message);
  return Buffer.from(codec === "json" ? JSON.stringify(toJson(schema, made)) : toBinary(schema, made));
}

/** A message of more values than any may have: of 2 or 3 bytes each, in a field that nobody knows. */
const manyValues = ({ codec }: RpcWire, count: number) =>
  codec === "json"
    ? Buffer.from(`{"zz":[${"[],".repeat(count)}[]]}`)
    : Buffer.from("fa3e00".repeat(count), "hex");

describe.for(rpcWires.map((wire) => [nameOfWire(wire), wire] as const))("%s", ([, wire]) => {
  const send = (server: TestServer, method: DescMethod, message: Buffer, compress?: "gzip" | "br") => {
    const headers = compress === undefined ? {} : { [encodingHeaderOf(wire, method)]: compress };
    const call = openCall(server.baseUrl, wire, method, { ...headers, "x-request-id": "asked" });
    const packed =
      compress === undefined
        ? message
        : compress === "gzip"
          ? gzipSync(message)
          : brotliCompressSync(message);
    call.write(bodyOf(wire, method, packed, compress !== undefined));
    call.end();
    return call.answer;
  };

  test("a message arrives, compressed or not", async () => {
    const server = await start();
    const message = encode(wire, SynthesizeRequestSchema, {
      input: "Grüße",
      model: "a/b",
      trace: { a: [1, null] },
    });
    for (const compress of [undefined, "gzip", "br"] as const) {
      expect((await send(server, synthesize, message, compress)).code).toBeUndefined();
      expect(
        (await send(server, listSpeechModels, encode(wire, ListSpeechModelsRequestSchema, {}), compress))
          .code,
      ).toBeUndefined();
    }
    expect(server.requests).toHaveLength(3);
    for (const request of server.requests) {
      expect(request).toMatchObject({ input: "Grüße", model: "a/b", trace: { a: [1, null] } });
    }
  });

  test("one that can't be decoded is invalid_argument, with the request's id in answer and log", async () => {
    const server = await start();
    for (const method of methods) {
      const { code, headers } = await send(server, method, Buffer.from("0a056162", "hex"));
      expect([code, headers["x-request-id"]], method.name).toEqual([Code.InvalidArgument, "asked"]);
      expect(server.logLines.at(-1)).toMatchObject({
        request_id: "asked",
        reason: "invalid_body",
        rpc: expect.any(String),
      });
    }
    expect((await send(server, synthesize, Buffer.from("no gzip"), undefined)).code).toBe(
      Code.InvalidArgument,
    );
  });

  test("one that is no gzip where it says so is invalid_argument", async () => {
    const server = await start();
    for (const method of methods) {
      const call = openCall(server.baseUrl, wire, method, { [encodingHeaderOf(wire, method)]: "gzip" });
      call.write(bodyOf(wire, method, Buffer.from("plain"), true));
      call.end();
      expect((await call.answer).code).toBe(Code.InvalidArgument);
    }
  });

  test("one with too much in it is refused, however little it weighs", async () => {
    const server = await start();
    for (const compress of [undefined, "gzip"] as const) {
      expect((await send(server, synthesize, manyValues(wire, 100), compress)).code).toBeUndefined();
      const { code } = await send(server, synthesize, manyValues(wire, 20_000), compress);
      expect(code).toBe(Code.InvalidArgument);
    }
    expect(server.requests).toHaveLength(2);
  });

  test("one above the limit of its RPC is resource_exhausted: by what it announces, what comes, what it inflates to", async () => {
    const server = await start();
    const large = encode(wire, SynthesizeRequestSchema, { input: "x".repeat(70 << 10) });
    expect((await send(server, synthesize, large)).code).toBeUndefined();
    expect((await send(server, listSpeechModels, large)).code).toBe(Code.ResourceExhausted);
    expect((await send(server, listSpeechModels, large, "gzip")).code).toBe(Code.ResourceExhausted);
    const announced = openCall(server.baseUrl, wire, listSpeechModels, {
      "content-length": String(70 << 10),
    });
    expect((await announced.answer).code).toBe(Code.ResourceExhausted);
    announced.cut();
    const dripped = openCall(server.baseUrl, wire, listSpeechModels);
    dripped.write(bodyOf(wire, listSpeechModels, large).subarray(0, 66 << 10));
    expect((await dripped.answer).code).toBe(Code.ResourceExhausted);
    dripped.cut();
  });

  test("a body that does not come to its end is given up in time", async () => {
    const server = await start({ bodyTimeoutMs: 100 });
    for (const method of methods) {
      const call = openCall(server.baseUrl, wire, method);
      const message = encode(wire, SynthesizeRequestSchema, { input: "x" });
      call.write(bodyOf(wire, method, message).subarray(0, 1));
      const { code } = await call.answer;
      expect(code).toBe(Code.InvalidArgument);
      call.cut();
    }
  });

  test("a body that is not one message is refused", async () => {
    const server = await start();
    const message = bodyOf(wire, synthesize, encode(wire, SynthesizeRequestSchema, { input: "x" }));
    const bodies: [Buffer, Code][] = [
      [Buffer.concat([message, message]), Code.InvalidArgument],
      [message.subarray(0, -1), Code.InvalidArgument],
      [Buffer.concat([Buffer.of(4), message.subarray(1)]), Code.InvalidArgument],
      [Buffer.of(), Code.Unimplemented],
    ];
    for (const [body, expected] of bodies) {
      const call = openCall(server.baseUrl, wire, synthesize);
      if (body.length > 0) call.write(body);
      call.end();
      expect((await call.answer).code).toBe(expected);
    }
    expect(server.requests).toEqual([]);
  });
});
