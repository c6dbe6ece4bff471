import type { Batch, DeliveryContext, DeliveryReceipt, DestinationType } from "../contract.ts";
import { checkExportAnswer, contentTypes, encodeExport } from "./export-request.ts";
import type { DescribeSpan } from "./span.ts";

/** What differs between types that speak OTLP over HTTP. */
interface OtlpTypeOptions<C> extends Pick<DestinationType<C>, "slug" | "secrets" | "readConfig"> {
  /** Where it sends to, and the headers that it and its owner set. */
  connect(config: C): { readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** Attributes that this receiver knows besides. */
  readonly describe?: DescribeSpan;
}

/** Makes a type that speaks OTLP over HTTP in protobuf. */
export function createOtlpType<C>(options: OtlpTypeOptions<C>): DestinationType<C> {
  const { slug, secrets, readConfig, connect, describe } = options;
  const send = async (
    config: C,
    mark: Readonly<Record<string, string>>,
    batch: Batch | undefined,
    { http, signal, nowMs }: DeliveryContext,
  ): Promise<DeliveryReceipt> => {
    const { url, headers } = connect(config);
    const answer = await http.send({
      method: "POST",
      url,
      headers: { ...headers, "content-type": contentTypes.protobuf, ...mark },
      body: encodeExport("protobuf", batch, describe),
      signal,
    });
    checkExportAnswer(answer, nowMs());
    return { status: answer.status };
  };
  return {
    slug,
    secrets,
    readConfig,
    urlsOf: (config) => [new URL(connect(config).url)],
    maxBatchEvents: 100,
    deliver: (batch, config, context) => send(config, { "x-delivery-id": batch.id }, batch, context),
    test: (config, context) => send(config, { "x-test-connection": "true" }, undefined, context),
  };
}

/** The `authorization` header of HTTP's Basic scheme (RFC 7617). */
export function basicAuthorization(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

/**
 * A base URL with a path behind its own, given in parts. Parts that the base ends in already are not repeated: people
 * paste addresses with and without them.
 */
export function appendPath(base: string, ...parts: readonly `/${string}`[]): string {
  const url = new URL(base);
  const own = url.pathname.replace(/\/+$/, "");
  const present = parts.findLastIndex((_, index) => own.endsWith(parts.slice(0, index + 1).join("")));
  url.pathname = [own, ...parts.slice(present + 1)].join("");
  url.hash = "";
  return url.href;
}
