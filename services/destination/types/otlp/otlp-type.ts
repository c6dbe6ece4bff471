import type { Batch, DeliveryContext, DeliveryReceipt, DestinationType } from "../contract.ts";
import { checkExportAnswer, contentTypes, encodeExport } from "./export-request.ts";
import type { DescribeSpan } from "./span.ts";

/** Where a type sends to, and the headers that it and its owner set. */
export interface OtlpConnection {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What differs between types that speak OTLP over HTTP. */
export interface OtlpTypeOptions<C> extends Pick<DestinationType<C>, "slug" | "secrets" | "readConfig"> {
  connect(config: C): OtlpConnection;
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
