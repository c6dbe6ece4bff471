/** What a client makes of answers that no service of ours gives: the stock client's words, or none of a service at all. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import {
  ListSpeechModelsResponseSchema,
  SynthesizeResponseSchema,
} from "../../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { audioFrame, audioLength } from "../../../test/support/services/speech-server.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { createRemoteTransport, createRpcClient } from "../client.ts";

const limits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };
const field = SynthesizeResponseSchema.field.audio;
const stock = (baseUrl: string) =>
  createConnectTransport({ baseUrl, httpVersion: "1.1", acceptCompression: [], ...limits });
const direct = {
  whole: (baseUrl: string) => createRemoteTransport({ baseUrl }),
  "in pieces": (baseUrl: string) => createRemoteTransport({ baseUrl, piecewiseField: field }),
};

/** Answers each request by this. */
async function startServer(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => answer(socket));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const head = (type: string, rest: string, status = "200 OK") =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/${type}\r\n${rest}connection: close\r\n\r\n`;
const chunked = "transfer-encoding: chunked\r\n";
const chunk = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
const lastChunk = "0\r\n\r\n";

const frame = (length: number) => encodeEnvelope(0, toBinary(SynthesizeResponseSchema, audioFrame(length)));
const end = (json = "{}") => encodeEnvelope(2, Buffer.from(json));
const flagged = (flags: number) => encodeEnvelope(flags, toBinary(SynthesizeResponseSchema, audioFrame(9)));
const claiming = (bytes: number) => {
  const envelope = Buffer.alloc(5);
  envelope.writeUInt32BE(bytes, 1);
  return envelope;
};

interface Outcome {
  /** Of all audio that came. */
  readonly bytes: number;
  readonly error: ConnectError | undefined;
}

async function consume(transport: Transport): Promise<Outcome> {
  let bytes = 0;
  try {
    for await (const message of createClient(SpeechService, transport).synthesize({})) {
      bytes += audioLength(message);
    }
    return { bytes, error: undefined };
  } catch (thrown) {
    return { bytes, error: thrown as ConnectError };
  }
}

const wire = ({ bytes, error }: Outcome) => ({ bytes, code: error?.code, message: error?.rawMessage });

describe.for(Object.entries(direct))("a stream read %s", ([, connect]) => {
  /** Whole HTTP answers, whose envelopes are not what they should be; the last is what came before. */
  test.for<[string, Uint8Array[], number]>([
    ["no envelope at all", [], 0],
    ["no end", [frame(10), frame(20)], 30],
    ["a message after the end", [frame(10), end(), frame(20)], 10],
    ["two ends", [frame(10), end(), end()], 10],
    ["an end that is no JSON", [frame(10), end("{")], 10],
    ["an end that is no object", [frame(10), end("[]")], 10],
    ["an end with metadata that is none", [frame(10), end('{"metadata":[]}')], 10],
    ["an error without a code", [frame(10), end('{"error":{"message":"so"}}')], 10],
    ["an error of an unknown code", [frame(10), end('{"error":{"code":"strange"}}')], 10],
    ["an error with broken details", [frame(10), end('{"error":{"code":"aborted","details":[1]}}')], 10],
    ["flags that nobody knows", [flagged(0x80), flagged(4), end()], 18],
    ["a compressed message", [frame(10), flagged(1), end()], 10],
    ["a message that can't be decoded", [frame(10), encodeEnvelope(0, Buffer.from([0x12, 9, 1])), end()], 10],
    ["a message above the limit", [frame(10), claiming((1 << 20) + 1), end()], 10],
    ["a message of all that can be said", [frame(10), claiming(0xffff_ffff), end()], 10],
    ["an end above the limit", [frame(10), Buffer.from([2, 0xff, 0xff, 0xff, 0xff])], 10],
    ["an end within a head", [frame(10), Buffer.from([0, 0])], 10],
  ])("with %s is what the stock client says", async ([, envelopes, bytes]) => {
    const baseUrl = await startServer(async (socket) => {
      socket.write(head("connect+proto", chunked));
      // Each in a packet of its own: of one that holds a fault the stock client drops what is before it.
      for (const envelope of envelopes) {
        await new Promise((resolve) => socket.write(chunk(envelope), resolve));
        await new Promise((resolve) => setImmediate(resolve));
      }
      socket.end(lastChunk);
    });
    const outcome = wire(await consume(connect(baseUrl)));
    const expected = wire(await consume(stock(baseUrl)));
    expect({ ...outcome, bytes: 0 }).toEqual({ ...expected, bytes: 0 });
    expect(outcome.bytes).toBe(bytes);
  });

  test.for<[string, (string | Uint8Array)[], number]>([
    ["before its head", [], 0],
    ["within its head", ["HTTP/1.1 200 OK\r\ncont"], 0],
    ["after its head", [head("connect+proto", chunked)], 0],
    ["within a frame", [head("connect+proto", chunked), "ff\r\n", frame(100).subarray(0, 57)], -1],
    ["after frames", [head("connect+proto", chunked), chunk(frame(10)), chunk(frame(20))], 30],
    ["after its last envelope", [head("connect+proto", chunked), chunk(frame(10)), chunk(end())], 10],
    [
      "before the length that it has",
      [head("connect+proto", "content-length: 99\r\n"), frame(10), end()],
      10,
    ],
    ["where nothing says that it goes on", [head("connect+proto", ""), frame(10)], 10],
  ])("that is cut %s has no end", async ([, parts, bytes]) => {
    const baseUrl = await startServer((socket) => {
      for (const part of parts) socket.write(part);
      socket.end();
    });
    const outcome = await consume(connect(baseUrl));
    expect(outcome.error).toBeInstanceOf(ConnectError);
    expect((await consume(stock(baseUrl))).error).toBeInstanceOf(ConnectError);
    if (bytes >= 0) expect(outcome.bytes).toBe(bytes);
    const next = createRpcClient(SpeechService, connect(baseUrl)).synthesize({})[Symbol.asyncIterator]();
    const drained = (async () => {
      while (!(await next.next()).done);
    })();
    await expect(drained).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  });

  test("whose last envelope is an error is over with it, though its connection stays open", async () => {
    let closed = 0;
    const baseUrl = await startServer((socket) => {
      socket.once("close", () => {
        closed += 1;
      });
      const error = end('{"error":{"code":"aborted","message":"the provider failed"}}');
      socket.write(
        Buffer.concat([Buffer.from(head("connect+proto", chunked)), chunk(frame(10)), chunk(error)]),
      );
    });
    const frames = createClient(SpeechService, connect(baseUrl)).synthesize({}, { timeoutMs: 1000 });
    const stream = frames[Symbol.asyncIterator]();
    expect(audioLength((await stream.next()).value)).toBe(10);
    await expect(stream.next()).rejects.toMatchObject({
      code: Code.Aborted,
      rawMessage: "the provider failed",
    });
    // A server that never ends its answer loses the connection at the deadline.
    await waitUntil(() => closed === 1);
  });
});

const models = toBinary(ListSpeechModelsResponseSchema, {
  $typeName: "media.speech.v1.ListSpeechModelsResponse",
  models: [],
});
const lengthOf = (body: string | Uint8Array, more = 0) => `content-length: ${body.length + more}\r\n`;

describe("a unary answer", () => {
  test.for<[string, string, string | Uint8Array]>([
    ["of another type", head("json", lengthOf("{}")), "{}"],
    ["of a stream's type", head("connect+proto", lengthOf(models)), models],
    ["of no type", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", ""],
    ["that can't be decoded", head("proto", lengthOf("\n\t\u0001")), "\n\t\u0001"],
    ["that is compressed", head("proto", `content-encoding: gzip\r\n${lengthOf(models)}`), models],
    ["above the limit", head("proto", "content-length: 1048577\r\n"), ""],
    ["that is an error", head("json", lengthOf('{"code":"aborted"}'), "409 Conflict"), '{"code":"aborted"}'],
    ["that is an error without a code", head("json", lengthOf("{}"), "404 Not Found"), "{}"],
    ["that is an error of no JSON", head("json", lengthOf("no"), "503 Unavailable"), "no"],
    ["of a proxy", head("xml", lengthOf("<no>"), "502 Bad Gateway"), "<no>"],
    ["that is an error in binary", head("proto", lengthOf(models), "500 Error"), models],
  ])("%s is what the stock client says", async ([, first, body]) => {
    const baseUrl = await startServer((socket) => {
      socket.write(first);
      socket.end(body);
    });
    const outcomes = await Promise.all([direct.whole(baseUrl), stock(baseUrl)].map(listModels));
    expect(outcomes[0]).toMatchObject({ code: expect.any(Number) });
    expect(outcomes[0]).toEqual(outcomes[1]);
  });

  test.for<[string, string, string | Uint8Array]>([
    ["is cut before its length", head("proto", lengthOf(models, 5)), models],
    ["is cut in its chunks", head("proto", chunked), "3\r\nabc"],
    ["does not say where it ends", head("proto", ""), models],
  ])("that %s is none", async ([, first, body]) => {
    const baseUrl = await startServer((socket) => {
      socket.write(first);
      socket.end(body);
    });
    const client = createRpcClient(SpeechService, direct.whole(baseUrl));
    const unavailable = { reason: ErrorReason.SERVICE_UNAVAILABLE };
    await expect(client.listSpeechModels({})).rejects.toMatchObject(unavailable);
  });

  test("above the limit in chunks is refused when it gets there", async () => {
    const piece = chunk(Buffer.alloc(300_000));
    const baseUrl = await startServer((socket) => {
      socket.write(head("proto", chunked));
      const more = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on("drain", more);
      more();
    });
    expect(await listModels(direct.whole(baseUrl))).toMatchObject({ code: Code.ResourceExhausted });
  });
});

async function listModels(transport: Transport) {
  try {
    return await createClient(SpeechService, transport).listSpeechModels({});
  } catch (thrown) {
    const { code, rawMessage } = thrown as ConnectError;
    return { code, rawMessage };
  }
}
