import type { UniversalServerRequest } from "@connectrpc/connect/protocol";

/** How a request carries its message, as its head says. Nothing is checked, which the stock handlers do. */
export interface RequestFormat {
  /** Behind a head of five bytes, as in streams of Connect and in all of gRPC and gRPC-Web. */
  readonly isEnveloped: boolean;
  readonly isJson: boolean;
  /** The name of its compression; undefined where it has none. */
  readonly encoding: string | undefined;
  /** The message itself where it stands in the URL. */
  readonly query: Uint8Array | undefined;
}

type RequestHead = Pick<UniversalServerRequest, "method" | "url" | "header">;

const envelopedPattern = /^application\/(connect\+|grpc)/i;
const grpcPattern = /^application\/grpc/i;

/** The format of a request over Connect, gRPC or gRPC-Web. */
export function requestFormatOf({ method, url, header }: RequestHead): RequestFormat {
  if (method === "GET") return formatOfQuery(new URL(url).searchParams);
  const contentType = header.get("content-type") ?? "";
  const isEnveloped = envelopedPattern.test(contentType);
  const streamEncoding = grpcPattern.test(contentType) ? "grpc-encoding" : "connect-content-encoding";
  return {
    isEnveloped,
    isJson: /json/i.test(contentType),
    encoding: encodingNamed(header.get(isEnveloped ? streamEncoding : "content-encoding")),
    query: undefined,
  };
}

/** Source: https://connectrpc.com/docs/protocol/#unary-get-request */
function formatOfQuery(parameters: URLSearchParams): RequestFormat {
  const message = parameters.get("message") ?? "";
  const isBase64 = parameters.get("base64") === "1";
  return {
    isEnveloped: false,
    isJson: parameters.get("encoding") === "json",
    encoding: encodingNamed(parameters.get("compression")),
    query: Buffer.from(message, isBase64 ? "base64" : "utf8"),
  };
}

function encodingNamed(name: string | null): string | undefined {
  return name === null || name === "" || name === "identity" ? undefined : name;
}

const emptyJson = Buffer.from("{}");
const noBytes = new Uint8Array(0);

/** The same request with an empty message of its format, wherever its message stands. */
export function withEmptyMessage(
  request: UniversalServerRequest,
  { isEnveloped, isJson, query }: RequestFormat,
): UniversalServerRequest {
  const header = new Headers(request.header);
  header.delete("content-length");
  const message = isJson ? emptyJson : noBytes;
  const body = isEnveloped ? Buffer.concat([Buffer.of(0, 0, 0, 0, message.length), message]) : message;
  const empty = { ...request, header, body: only(body) };
  if (query === undefined) return empty;
  const url = new URL(request.url);
  url.searchParams.set("message", isJson ? "{}" : "");
  url.searchParams.delete("base64");
  return { ...empty, url: url.toString() };
}

/** A stream of this one item. */
export async function* only<T>(item: T): AsyncGenerator<T> {
  yield item;
}
