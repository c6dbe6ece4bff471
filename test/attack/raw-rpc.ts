/** Calls an RPC with bytes of the caller's choice, as an attacker would: no client library looks at them first. */
import { request } from "node:http";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { gzipSync } from "node:zlib";

/** Every protocol that the port takes. */
export const protocols = ["Connect", "Connect stream", "gRPC", "gRPC-Web"] as const;

/** One of them. */
export type Protocol = (typeof protocols)[number];

/** One call. */
export interface RawCall {
  readonly protocol: Protocol;
  /** `media.speech.v1.SpeechService/Synthesize`. */
  readonly rpc: string;
  readonly format: "json" | "proto";
  readonly message: Buffer;
  readonly key?: string | undefined;
  readonly gzip?: boolean;
}

/** An answer of HTTP, and its error in Connect's words or as gRPC's number, where it has one. */
export interface RawAnswer {
  readonly status: number;
  readonly error: string;
}

const limitMs = 30_000;

/** Sends it and resolves with what comes back; an answer that never comes is an error. */
export function callRaw(rpcPort: number, call: RawCall): Promise<RawAnswer> {
  const body = bodyOf(call);
  const headers = { ...headersOf(call), "content-length": `${body.length}` };
  return call.protocol === "gRPC"
    ? overHttp2(rpcPort, call.rpc, headers, body)
    : overHttp1(rpcPort, call.rpc, headers, body);
}

function bodyOf({ protocol, message, gzip = false }: RawCall): Buffer {
  const bytes = gzip ? packed(message) : message;
  if (protocol === "Connect") return bytes;
  const head = Buffer.from([gzip ? 1 : 0, 0, 0, 0, 0]);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const packedMessages = new WeakMap<Buffer, Buffer>();

function packed(message: Buffer): Buffer {
  const known = packedMessages.get(message) ?? gzipSync(message);
  packedMessages.set(message, known);
  return known;
}

function headersOf({ protocol, format, key, gzip = false }: RawCall): Record<string, string> {
  const types: Readonly<Record<Protocol, string>> = {
    Connect: `application/${format}`,
    "Connect stream": `application/connect+${format}`,
    gRPC: `application/grpc+${format}`,
    "gRPC-Web": `application/grpc-web+${format}`,
  };
  const encodings: Readonly<Record<Protocol, string>> = {
    Connect: "content-encoding",
    "Connect stream": "connect-content-encoding",
    gRPC: "grpc-encoding",
    "gRPC-Web": "grpc-encoding",
  };
  return {
    "content-type": types[protocol],
    "connect-protocol-version": "1",
    te: "trailers",
    ...(gzip ? { [encodings[protocol]]: "gzip" } : {}),
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
}

function overHttp1(
  port: number,
  rpc: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(
      { port, path: `/${rpc}`, method: "POST", headers, agent: false, signal: AbortSignal.timeout(limitMs) },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject).on("end", () => {
          const status = response.statusCode ?? 0;
          resolve({ status, error: errorOf(response.headers["grpc-status"], Buffer.concat(chunks)) });
        });
      },
    );
    // The rest of a body that nobody wants can't always be sent.
    call.on("error", reject).end(body);
  });
}

async function overHttp2(
  port: number,
  rpc: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<RawAnswer> {
  const session = connect(`http://127.0.0.1:${port}`);
  try {
    return await callOnSession(session, rpc, headers, body);
  } finally {
    session.destroy();
  }
}

function callOnSession(
  session: ClientHttp2Session,
  rpc: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    session.on("error", reject);
    const stream = session.request({ ":method": "POST", ":path": `/${rpc}`, ...headers });
    stream.setTimeout(limitMs, () => stream.close(constants.NGHTTP2_CANCEL));
    const chunks: Buffer[] = [];
    let status = 0;
    let grpcStatus: string | undefined;
    stream.on("response", (answer) => {
      status = Number(answer[":status"] ?? 0);
      grpcStatus = answer["grpc-status"]?.toString();
    });
    stream.on("trailers", (trailers) => {
      grpcStatus ??= trailers["grpc-status"]?.toString();
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", () => undefined);
    stream.on("close", () => resolve({ status, error: errorOf(grpcStatus, Buffer.concat(chunks)) }));
    stream.end(body);
  });
}

/** Of a unary answer the body, of a stream its last envelope, else gRPC's status. */
function errorOf(grpcStatus: string | string[] | undefined, body: Buffer): string {
  if (grpcStatus !== undefined) return `${grpcStatus}`;
  const text = body.toString("latin1");
  return /grpc-status: ?(\d+)/i.exec(text)?.[1] ?? /"code":\s*"(\w+)"/.exec(text)?.[1] ?? "";
}
