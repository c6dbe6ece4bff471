/** A client of HTTP/2 that goes on sending what is refused, in frames written by hand (RFC 9113). */
import { connect, type Socket } from "node:net";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { startSpeechServer } from "../../../test/support/services/speech-server.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";

const frameHeadBytes = 9;
const types = { data: 0, headers: 1, reset: 3, settings: 4, windowUpdate: 8 } as const;
const endStream = 1;
const endHeaders = 4;
const noError = Buffer.alloc(4);
/** The first window of a connection and of each stream. */
const windowBytes = 65_535;

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

const refuseAll: Interceptor = () => () => {
  throw new ConnectError("nobody may call", Code.Unauthenticated);
};

class Peer {
  readonly frames: Frame[] = [];
  readonly #socket: Socket;
  #rest = Buffer.alloc(0);

  constructor(port: number) {
    this.#socket = connect(port, "localhost");
    this.#socket.on("data", (chunk) => this.#take(chunk)).on("error", () => undefined);
    onTestFinished(() => void this.#socket.destroy());
    this.#socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    this.send(types.settings, 0, 0, Buffer.alloc(0));
  }

  send(type: number, flags: number, stream: number, payload: Buffer): void {
    const head = Buffer.alloc(frameHeadBytes);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(type, 3);
    head.writeUInt8(flags, 4);
    head.writeUInt32BE(stream, 5);
    this.#socket.write(Buffer.concat([head, payload]));
  }

  /** Literal fields without indexing (RFC 7541, 6.2.2). */
  request(stream: number, fields: Readonly<Record<string, string>>): void {
    const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value)]);
    const literals = Object.entries(fields).map(([name, value]) =>
      Buffer.concat([Buffer.of(0), text(name), text(value)]),
    );
    this.send(types.headers, endHeaders, stream, Buffer.concat(literals));
  }

  /** The bytes by which the window of the connection was opened again. */
  get returnedBytes(): number {
    const updates = this.frames.filter(({ type, stream }) => type === types.windowUpdate && stream === 0);
    return updates.reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= frameHeadBytes) {
      const end = frameHeadBytes + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      const payload = this.#rest.subarray(frameHeadBytes, end);
      const [type, flags] = [this.#rest.readUInt8(3), this.#rest.readUInt8(4)];
      this.frames.push({ type, flags, stream: this.#rest.readUInt32BE(5), payload });
      this.#rest = this.#rest.subarray(end);
    }
  }
}

test.for([
  ["application/json", "unread"],
  ["application/proto", "unread"],
  ["application/connect+proto", "unread"],
  ["application/connect+proto", "when it was begun to be read"],
  ["application/connect+json", "unread"],
  ["application/grpc", "unread"],
  ["application/grpc-web", "unread"],
  ["application/connect+json", "when it was begun to be read"],
  ["application/grpc", "when it was begun to be read"],
  ["application/grpc-web", "when it was begun to be read"],
] as const)(
  "a body of %s that is refused %s is answered whole, then reset without error, and its bytes don't stay",
  async ([contentType, when]) => {
    const interceptors = when === "unread" ? [refuseAll] : [];
    const server = await startSpeechServer({
      routes: (router) => router.service(SpeechService, {}, { interceptors }),
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    const peer = new Peer(server.port);
    const isUnary = contentType === "application/json" || contentType === "application/proto";
    const method = isUnary ? "ListSpeechModels" : "Synthesize";
    const path = `/${SpeechService.typeName}/${method}`;
    const head = { ":method": "POST", ":scheme": "http", ":path": path, ":authority": "media.test" };
    // To whom reads it an envelope that is far too large.
    const piece = Buffer.alloc(8000, 0x7f);
    const streams = Array.from({ length: 20 }, (_, index) => 2 * index + 1);
    let sentBytes = 0;
    const sendTo = async (stream: number) => {
      await waitUntil(() => sentBytes + piece.length - peer.returnedBytes <= windowBytes);
      sentBytes += piece.length;
      peer.send(types.data, 0, stream, piece);
    };
    for (const stream of streams) {
      peer.request(stream, { ...head, "content-type": contentType });
      await sendTo(stream);
    }
    const framesOf = (stream: number) =>
      peer.frames.filter((frame) => frame.stream === stream && frame.type !== types.windowUpdate);
    await waitUntil(() => streams.every((stream) => framesOf(stream).at(-1)?.type === types.reset));
    for (const stream of streams) {
      // What was on its way before the client heard of that.
      await sendTo(stream);
      expect(framesOf(stream).at(-1)?.payload).toEqual(noError);
      expect((framesOf(stream).at(-2)?.flags ?? 0) & endStream).toBe(endStream);
    }
    expect(sentBytes).toBeGreaterThan(4 * windowBytes);
    await waitUntil(() => sentBytes - peer.returnedBytes < windowBytes);
  },
);
