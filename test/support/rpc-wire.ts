import { once } from "node:events";
import { request as requestHttp1 } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";

/** A way to write a call by hand, as no client would. */
export interface RpcWire {
  readonly protocol: "connect" | "grpc" | "grpc-web";
  readonly codec: "proto" | "json";
  readonly httpVersion: 1 | 2;
}

/** Every way in which a call may come. */
export const rpcWires: readonly RpcWire[] = (["proto", "json"] as const).flatMap((codec) => [
  { protocol: "connect", codec, httpVersion: 1 } as const,
  { protocol: "connect", codec, httpVersion: 2 } as const,
  { protocol: "grpc", codec, httpVersion: 2 } as const,
  { protocol: "grpc-web", codec, httpVersion: 1 } as const,
  { protocol: "grpc-web", codec, httpVersion: 2 } as const,
]);

/** For test names: `grpc json over HTTP/2`. */
export function nameOfWire({ protocol, codec, httpVersion }: RpcWire): string {
  return `${protocol} ${codec} over HTTP/${httpVersion}`;
}

/** What came back. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** Undefined when the call ended well. */
  readonly code: Code | undefined;
}

/** A call whose head has been sent. */
export interface WireCall {
  write(bytes: Uint8Array): void;
  end(): void;
  /** Drops it. */
  cut(): void;
  /** Rejects when the connection breaks first. */
  readonly answer: Promise<WireAnswer>;
}

/** Sends the head of a call; `session` is used over HTTP/2 where one is given, else the call has a connection of its own. */
export function openCall(
  baseUrl: string,
  wire: RpcWire,
  method: DescMethod,
  headers: Readonly<Record<string, string>> = {},
  session?: ClientHttp2Session,
): WireCall {
  const path = `/${method.parent.typeName}/${method.name}`;
  const all = { "content-type": contentTypeOf(wire, method), ...headers };
  return wire.httpVersion === 1
    ? openHttp1(`${baseUrl}${path}`, all, wire, method)
    : openHttp2(baseUrl, path, all, { wire, method, session });
}

/** A body of one message in the format of a wire. */
export function bodyOf(wire: RpcWire, method: DescMethod, message: Uint8Array, isCompressed = false): Buffer {
  if (wire.protocol === "connect" && method.methodKind === "unary") return Buffer.from(message);
  const head = Buffer.alloc(5);
  head[0] = isCompressed ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The name of the header that tells how messages are compressed. */
export function encodingHeaderOf(wire: RpcWire, method: DescMethod): string {
  if (wire.protocol !== "connect") return "grpc-encoding";
  return method.methodKind === "unary" ? "content-encoding" : "connect-content-encoding";
}

function contentTypeOf({ protocol, codec }: RpcWire, method: DescMethod): string {
  if (protocol !== "connect") return `application/${protocol}+${codec}`;
  return `application/${method.methodKind === "unary" ? "" : "connect+"}${codec}`;
}

function openHttp1(
  url: string,
  headers: Readonly<Record<string, string>>,
  wire: RpcWire,
  method: DescMethod,
): WireCall {
  const request = requestHttp1(url, { method: "POST", headers, agent: false });
  request.flushHeaders();
  const read = async (): Promise<WireAnswer> => {
    const [response] = await once(request, "response");
    const body = Buffer.concat(await Array.fromAsync<Buffer>(response));
    const answer = { status: response.statusCode, headers: response.headers, body };
    return { ...answer, code: codeOf(wire, method, answer, response.trailers) };
  };
  const answer = read();
  answer.catch(() => undefined);
  request.on("error", () => undefined);
  return {
    write: (bytes) => void request.write(bytes),
    end: () => void request.end(),
    cut: () => void request.destroy(),
    answer,
  };
}

function openHttp2(
  baseUrl: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  { wire, method, session }: { wire: RpcWire; method: DescMethod; session: ClientHttp2Session | undefined },
): WireCall {
  const used = session ?? connect(baseUrl);
  used.on("error", () => undefined);
  const stream = used.request(
    { ":method": "POST", ":path": path, te: "trailers", ...headers },
    { endStream: false },
  );
  let trailers: Record<string, string> = {};
  stream.on("trailers", (received) => {
    trailers = received as unknown as Record<string, string>;
  });
  const read = async (): Promise<WireAnswer> => {
    const [received] = await once(stream, "response");
    const body = Buffer.concat(await Array.fromAsync<Buffer>(stream));
    const answer = { status: received[":status"], headers: received, body };
    return { ...answer, code: codeOf(wire, method, answer, trailers) };
  };
  const answer = read().finally(() => session ?? used.destroy());
  answer.catch(() => undefined);
  stream.on("error", () => undefined);
  return {
    write: (bytes) => void stream.write(bytes),
    end: () => void stream.end(),
    cut: () => stream.destroy(),
    answer,
  };
}

function codeOf(
  wire: RpcWire,
  method: DescMethod,
  { status, headers, body }: Omit<WireAnswer, "code">,
  trailers: Readonly<Record<string, string | undefined>>,
): Code | undefined {
  if (wire.protocol === "connect" && method.methodKind === "unary") {
    return status === 200 ? undefined : codeFromString(JSON.parse(body.toString()).code);
  }
  if (wire.protocol === "connect") {
    return codeFromString(JSON.parse(lastFrameOf(body).toString()).error?.code ?? "");
  }
  const inBody = /grpc-status: *(\d+)/i.exec(
    wire.protocol === "grpc-web" ? lastFrameOf(body).toString() : "",
  )?.[1];
  const number = Number(headers["grpc-status"] ?? trailers["grpc-status"] ?? inBody);
  return number === 0 ? undefined : number;
}

/** What the last envelope of a stream holds. */
function lastFrameOf(body: Buffer): Buffer {
  let last: Buffer = Buffer.alloc(0);
  for (let at = 0; at + 5 <= body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    last = body.subarray(at + 5, end);
    at = end;
  }
  return last;
}
