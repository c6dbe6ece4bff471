import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { createConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { encodeEnvelope, type UniversalHandler } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { GenerateRequestSchema, GenerateResponseSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import { DomainError } from "../../runtime/domain-error.ts";
import { bytesSender, type SendBytes, withUncopiedBytes } from "./outgoing-bytes.ts";

type Frame = NonNullable<MessageInitShape<typeof GenerateResponseSchema>["frame"]>;

/** What a call's handler does: frames in order, and the error it ends with. */
interface Script {
  readonly frames: readonly Frame[];
  readonly error?: Error | undefined;
}

const maxMessageBytes = 100_000;
const { imageData } = GenerateResponseSchema.field;

type Generate = (send: SendBytes, context: HandlerContext) => AsyncIterable<{ frame: Frame }>;

/** A handler as the stock router makes it, and with our wrapping. */
function handlersOf(generate: Generate) {
  const router = createConnectRouter({
    readMaxBytes: maxMessageBytes,
    writeMaxBytes: maxMessageBytes,
    acceptCompression: [compressionGzip],
  });
  router.service(ImageService, {
    generate: (_, context) => generate(bytesSender(context, imageData, maxMessageBytes), context),
  });
  const stock = router.handlers.find(({ method }) => method.name === "Generate");
  if (stock === undefined) throw new Error("no handler");
  return { stock, ours: withUncopiedBytes(stock) };
}

/** Handlers that give image data to the sender. */
function performing({ frames, error }: Script, onEnd: (context: HandlerContext) => void = () => undefined) {
  return handlersOf(async function* (send, context) {
    try {
      for (const frame of frames) {
        const isData = frame.case === "imageData" && frame.value !== undefined;
        yield { frame: isData ? { case: "imageData", value: send(frame.value) } : frame };
      }
      context.responseTrailer.set("x-last", "yes");
      if (error !== undefined) throw error;
    } finally {
      onEnd(context);
    }
  });
}

const request = encodeEnvelope(0, toBinary(GenerateRequestSchema, create(GenerateRequestSchema)));
const jsonRequest = encodeEnvelope(0, new TextEncoder().encode("{}"));

function call(handler: UniversalHandler, headers: Record<string, string>) {
  const { "content-type": contentType = "" } = headers;
  return handler({
    httpVersion: "2.0",
    method: "POST",
    url: `http://localhost${handler.requestPath}`,
    header: new Headers(headers),
    body: (async function* () {
      yield contentType.endsWith("json") ? jsonRequest : request;
    })(),
    signal: new AbortController().signal,
  });
}

async function answerOf(handler: UniversalHandler, headers: Record<string, string>) {
  const { status, header, body, trailer } = await call(handler, headers);
  const chunks = await Array.fromAsync(body ?? []);
  const headerLines = [...(header ?? [])];
  return {
    chunks,
    wire: { status, headerLines, body: Buffer.concat(chunks), trailer: [...(trailer ?? [])] },
  };
}

const plain = [
  "application/connect+proto",
  "application/grpc",
  "application/grpc+proto",
  "application/grpc-web",
  "application/grpc-web+proto",
].map((type) => ({ "content-type": type }));
const encoded: Record<string, string>[] = [
  { "content-type": "application/connect+json" },
  { "content-type": "application/grpc+json" },
  { "content-type": "application/grpc-web+json" },
  { "content-type": "application/connect+proto", "connect-accept-encoding": "br, gzip" },
  { "content-type": "application/grpc", "grpc-accept-encoding": "identity,deflate,gzip" },
  { "content-type": "application/grpc-web+proto", "grpc-accept-encoding": "gzip" },
];

const data = (bytes: Uint8Array): Frame => ({ case: "imageData", value: bytes });
const filled = (length: number, value = 7) => new Uint8Array(length).fill(value);
const anyFrame: fc.Arbitrary<Frame> = fc.oneof(
  fc.constantFrom(0, 1, 2, 127, 128, 16_383, 16_384, 70_000).map((length) => data(filled(length))),
  fc.constantFrom<Frame>(
    { case: "textChunk", value: {} },
    { case: "textChunk", value: { text: "x" } },
    { case: "partial", value: { data: filled(9) } },
    { case: "finished", value: {} },
  ),
);
const anyScript: fc.Arbitrary<Script> = fc.record({
  frames: fc.array(anyFrame, { maxLength: 6 }),
  error: fc.constantFrom(
    undefined,
    new DomainError(ErrorReason.TIMED_OUT, "late").toConnectError(),
    new Error("bug"),
  ),
});

describe.for([...plain, ...encoded])("an answer to %j", (headers) => {
  test("is on the wire what the stock encoder writes", async () => {
    const property = fc.asyncProperty(anyScript, async (script) => {
      const { stock, ours } = performing(script);
      const { wire } = await answerOf(ours, headers);
      expect(wire).toEqual((await answerOf(stock, headers)).wire);
      expect(wire.status).toBe(200);
    });
    await fc.assert(property, { numRuns: 40 });
  });

  test.for([-1, 0, 1])("ends alike with a message %i bytes over the limit", async (over) => {
    const { stock, ours } = performing({
      frames: [data(filled(maxMessageBytes - 4 + over)), data(filled(3))],
    });
    const [actual, expected] = [await answerOf(ours, headers), await answerOf(stock, headers)];
    expect(actual.wire).toEqual(expected.wire);
  });
});

test.for(plain)("bytes go out as they are in an answer to %j", async (headers) => {
  const bytes = [filled(70_000), filled(1)];
  const { ours } = performing({ frames: bytes.map(data) });
  const { chunks } = await answerOf(ours, headers);
  expect(chunks.filter((chunk) => bytes.includes(chunk as Uint8Array<ArrayBuffer>))).toEqual(bytes);
});

test.for(encoded)("bytes are encoded in an answer to %j", async (headers) => {
  const bytes = filled(70_000);
  const { ours } = performing({ frames: [data(bytes)] });
  const { chunks } = await answerOf(ours, headers);
  expect(chunks).not.toContain(bytes);
});

test("an envelope that lacks no bytes is left as it is", async () => {
  const { ours } = handlersOf(async function* (send) {
    // Never yielded, as where an interceptor drops a message.
    send(filled(9));
    yield { frame: { case: "textChunk", value: {} } };
  });
  const { chunks } = await answerOf(ours, { "content-type": "application/connect+proto" });
  expect(chunks[0]).toEqual(new Uint8Array([0, 0, 0, 0, 2, 0x1a, 0]));
});

test("the handler ends when the answer is left or can't be written", async () => {
  for (const end of ["return", "throw"] as const) {
    const ended: boolean[] = [];
    const script = { frames: [data(filled(10)), data(filled(10)), data(filled(10))] };
    const { ours } = performing(script, ({ signal }) => ended.push(signal.aborted));
    const { body } = await call(ours, { "content-type": "application/connect+proto" });
    const chunks = body?.[Symbol.asyncIterator]();
    await chunks?.next();
    await chunks?.next();
    await chunks?.[end]?.(new Error("broken pipe")).catch(() => undefined);
    await expect.poll(() => ended).toEqual([true]);
  }
});
