import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ConnectError, createClient } from "@connectrpc/connect";
import {
  type CommonTransportOptions,
  encodeEnvelope,
  type UniversalClientFn,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import fc from "fast-check";
import { Dispatcher } from "undici";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { type GenerateResponse, GenerateResponseSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import { consumeStream, createRemoteTransport, createRpcClient } from "../client.ts";
import { createDirectTransport } from "./direct-transport.ts";

const field = GenerateResponseSchema.field.imageData;
const maxMessageBytes = 100_000;

const filled = (length: number, value = 7) => new Uint8Array(length).fill(value);
const message = (frame: Parameters<typeof create<typeof GenerateResponseSchema>>[1]) =>
  toBinary(GenerateResponseSchema, create(GenerateResponseSchema, frame));
const dataMessage = (bytes: Uint8Array) => message({ frame: { case: "imageData", value: bytes } });
const dataEnvelope = (bytes: Uint8Array) => encodeEnvelope(0, dataMessage(bytes));
const endEnvelope = (text = "{}") => encodeEnvelope(2, Buffer.from(text));

/** What a stream gave before its end: frames, data that follows data joined, and its error. */
interface Outcome {
  readonly frames: readonly unknown[];
  readonly error: { readonly code: number; readonly message: string } | undefined;
}

/** Gives a call this answer, chunk by chunk, as undici does. */
class Played extends Dispatcher {
  readonly #status: number;
  readonly #chunks: readonly Uint8Array[];
  readonly #failure: Error | undefined;

  constructor(status: number, chunks: readonly Uint8Array[], failure: Error | undefined) {
    super();
    this.#status = status;
    this.#chunks = chunks;
    this.#failure = failure;
  }

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const state = { paused: Promise.withResolvers<void>(), aborted: false };
    state.paused.resolve();
    const controller: Dispatcher.DispatchController = {
      aborted: false,
      paused: false,
      reason: null,
      abort: () => {
        state.aborted = true;
      },
      pause: () => {
        state.paused = Promise.withResolvers();
      },
      resume: () => state.paused.resolve(),
    };
    const play = async () => {
      handler.onRequestStart?.(controller, null);
      handler.onResponseStart?.(controller, this.#status, { "content-type": contentTypeOf(this.#status) });
      for (const chunk of this.#chunks) {
        await state.paused.promise;
        if (state.aborted) return;
        handler.onResponseData?.(controller, Buffer.from(chunk));
      }
      await state.paused.promise;
      if (this.#failure !== undefined) throw this.#failure;
      handler.onResponseEnd?.(controller, {});
    };
    play().catch((thrown: Error) => handler.onResponseError?.(controller, thrown));
    return true;
  }
}

function contentTypeOf(status: number): string {
  return status === 200 ? "application/connect+proto" : "application/json";
}

/** Calls over the stock transport and over ours, which both get a body in these chunks. */
async function receive(chunks: readonly Uint8Array[], status = 200, failure?: Error) {
  const httpClient: UniversalClientFn = async () => ({
    status,
    header: new Headers({ "content-type": contentTypeOf(status) }),
    trailer: new Headers(),
    body: (async function* () {
      yield* chunks;
      if (failure !== undefined) throw failure;
    })(),
  });
  const limits = { readMaxBytes: maxMessageBytes, writeMaxBytes: maxMessageBytes };
  const options: CommonTransportOptions = {
    httpClient,
    baseUrl: "http://localhost",
    useBinaryFormat: true,
    interceptors: [],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    ...limits,
  };
  const stock = createTransport(options);
  const calling = { baseUrl: "http://localhost", interceptors: [], defaultTimeoutMs: 10_000, limits };
  const dispatcher = new Played(status, chunks, failure);
  const whole = createDirectTransport({ ...calling, dispatcher });
  const pieces = createDirectTransport({ ...calling, dispatcher, piecewiseField: field });
  return { stock: await outcomeOf(stock), ours: await outcomeOf(pieces), whole: await outcomeOf(whole) };
}

async function outcomeOf(transport: Parameters<typeof createClient>[1]): Promise<Outcome> {
  const frames: GenerateResponse["frame"][] = [];
  try {
    for await (const { frame } of createClient(ImageService, transport).generate({})) frames.push(frame);
    return { frames: joined(frames), error: undefined };
  } catch (thrown) {
    const { code, rawMessage } = ConnectError.from(thrown);
    return { frames: joined(frames), error: { code, message: rawMessage } };
  }
}

function joined(frames: readonly GenerateResponse["frame"][]): unknown[] {
  const result: GenerateResponse["frame"][] = [];
  for (const frame of frames) {
    const last = result.at(-1);
    if (frame.case === "imageData" && last?.case === "imageData") {
      result[result.length - 1] = { case: "imageData", value: Buffer.concat([last.value, frame.value]) };
    } else {
      result.push(
        frame.case === "imageData" ? { case: "imageData", value: Buffer.from(frame.value) } : frame,
      );
    }
  }
  return result;
}

/** Cuts bytes at the places given, in any order. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

const unknownField = Buffer.from([0x7a, 0x01, 0x00]);
/** Envelopes that decode, by what is in them. */
const good: Readonly<Record<string, Uint8Array>> = {
  ...Object.fromEntries(
    [0, 1, 2, 127, 128, 16_384, maxMessageBytes - 4].map((length) => [
      `${length} bytes`,
      dataEnvelope(filled(length)),
    ]),
  ),
  text: encodeEnvelope(0, message({ frame: { case: "textChunk", value: { text: "words" } } })),
  nothing: encodeEnvelope(0, message({})),
  "bytes, then another field": encodeEnvelope(0, Buffer.concat([dataMessage(filled(5)), unknownField])),
  "bytes after another field": encodeEnvelope(0, Buffer.concat([unknownField, dataMessage(filled(5))])),
  "bytes twice": encodeEnvelope(0, Buffer.concat([dataMessage(filled(5)), dataMessage(filled(6, 8))])),
};
const bad: Readonly<Record<string, Uint8Array>> = {
  "over the limit": dataEnvelope(filled(maxMessageBytes)),
  compressed: encodeEnvelope(1, dataMessage(filled(9))),
  "bytes longer than their message": encodeEnvelope(0, dataMessage(filled(9)).subarray(0, 8)),
  "a length of too many digits": encodeEnvelope(0, Buffer.from([0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])),
  "a length without its last digit": encodeEnvelope(0, Buffer.from([0x2a, 0x85, 0x80])),
  "an end before the end": endEnvelope(),
};
const ends: Readonly<Record<string, Uint8Array>> = {
  plain: endEnvelope(),
  metadata: endEnvelope('{"metadata":{"x-last":["yes"]}}'),
  error: endEnvelope('{"error":{"code":"aborted","message":"the provider failed"}}'),
};
const anyGood = fc.array(fc.constantFrom(...Object.keys(good)), { maxLength: 6 });
const anyPlaces = fc.array(fc.nat(), { maxLength: 12 });

const bodyOf = (names: readonly string[], ...last: readonly (Uint8Array | undefined)[]) =>
  Buffer.concat([...names.map((name) => good[name]), ...last].filter((envelope) => envelope !== undefined));

describe("a stream in pieces", () => {
  test("has the messages of the stock decoder, however its body is cut", async () => {
    const anyEnd = fc.constantFrom(...Object.keys(ends));
    const property = fc.asyncProperty(anyGood, anyEnd, anyPlaces, async (names, end, places) => {
      const { stock, ours, whole } = await receive(cut(bodyOf(names, ends[end]), places));
      expect(stock.error === undefined).toBe(end !== "error");
      // A report of what differs would be megabytes.
      expect(isDeepStrictEqual(ours, stock)).toBe(true);
      expect(isDeepStrictEqual(whole, stock)).toBe(true);
    });
    await fc.assert(property, { numRuns: 150 });
  });

  test("fails with the error of the stock decoder where it fails, after what came before", async () => {
    const anyBad = fc.constantFrom(...Object.keys(bad));
    const property = fc.asyncProperty(anyGood, anyBad, anyPlaces, async (names, name, places) => {
      const { stock, ours, whole } = await receive(cut(bodyOf(names, bad[name], endEnvelope()), places));
      expect(stock.error).toBeDefined();
      expect(ours.error).toEqual(stock.error);
      expect(isDeepStrictEqual(whole, ours)).toBe(true);
      expect(bytesOf(ours).equals(Buffer.concat(names.flatMap((good) => bytesOfName(good))))).toBe(true);
    });
    await fc.assert(property, { numRuns: 150 });
  });

  test("gives what came of a body that ends too early, then its error", async () => {
    const anyFailure = fc.constantFrom(undefined, new ConnectError("the connection broke"));
    const property = fc.asyncProperty(
      anyGood,
      fc.nat(),
      anyPlaces,
      anyFailure,
      async (names, at, places, failure) => {
        const whole = bodyOf(names, good["16384 bytes"]);
        const { stock, ours } = await receive(
          cut(whole.subarray(0, at % whole.length), places),
          200,
          failure,
        );
        expect(stock.error).toBeDefined();
        // Of a head alone the stock decoder forgets that it has begun a message.
        expect(ours.error?.code).toBe(stock.error?.code);
        expect(bytesOf(ours).indexOf(bytesOf(stock))).toBe(0);
      },
    );
    await fc.assert(property, { numRuns: 150 });
  });

  test("fails as with the stock decoder on an answer that is no stream", async () => {
    for (const text of ['{"code":"unauthenticated","message":"no key"}', "not json", "\0\0\0"]) {
      const { stock, ours, whole } = await receive([Buffer.from(text)], 401);
      expect([ours, whole]).toEqual([stock, stock]);
    }
  });
});

/** The image data alone. */
function bytesOf({ frames }: Outcome): Buffer {
  const data = frames as GenerateResponse["frame"][];
  return Buffer.concat(data.map((frame) => (frame.case === "imageData" ? frame.value : new Uint8Array())));
}

function bytesOfName(name: string): Uint8Array[] {
  const { frame } = fromBinary(GenerateResponseSchema, good[name]?.subarray(5) ?? new Uint8Array());
  return frame.case === "imageData" ? [frame.value] : [];
}

/** A server that begins to send an image and stops amid it. */
async function startStallingServer() {
  const answers: ServerResponse[] = [];
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/connect+proto" });
    response.write(dataEnvelope(filled(90_000)).subarray(0, 50_000));
    answers.push(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    answers,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("amid an image", () => {
  async function read(
    baseUrl: string,
    { timeoutMs = 10_000, signal }: { timeoutMs?: number; signal?: AbortSignal },
    onPiece: (received: number) => void = () => undefined,
  ) {
    const client = createRpcClient(ImageService, createRemoteTransport({ baseUrl, piecewiseField: field }));
    let received = 0;
    try {
      const open = (callSignal: AbortSignal) => client.generate({}, { signal: callSignal, timeoutMs });
      for await (const { frame } of consumeStream(open, signal)) {
        received += frame.case === "imageData" ? frame.value.length : 0;
        onPiece(received);
      }
      return { received, error: undefined };
    } catch (error) {
      return { received, error };
    }
  }

  test("a deadline is one, and what had come was given", async () => {
    await using server = await startStallingServer();
    const { received, error } = await read(server.baseUrl, { timeoutMs: 1000 });
    expect(error).toMatchObject({ name: "DomainError", reason: ErrorReason.TIMED_OUT });
    expect(received).toBe(50_000 - 9);
  });

  test("the caller's signal ends the call and its connection", async () => {
    await using server = await startStallingServer();
    const controller = new AbortController();
    const { error } = await read(server.baseUrl, { signal: controller.signal }, (received) => {
      if (received === 50_000 - 9) controller.abort();
    });
    expect(error).toMatchObject({ name: "DomainError", reason: ErrorReason.CANCELLED });
    await expect.poll(() => server.answers[0]?.destroyed).toBe(true);
  });

  test("a service that breaks off is away", async () => {
    await using server = await startStallingServer();
    const { error } = await read(server.baseUrl, {}, () => server.answers[0]?.destroy());
    expect(error).toMatchObject({ name: "DomainError", reason: ErrorReason.SERVICE_UNAVAILABLE });
  });
});
