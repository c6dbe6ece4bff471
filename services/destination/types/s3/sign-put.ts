/**
 * Amazon's own client as the one who writes and signs a request, and sends nothing.
 *
 * - The signed request is handed back; the way to receivers sends it, so that addresses are checked and one call is one
 *   request.
 * - Nothing of the process's own environment or files reaches the client: neither credentials nor addresses.
 */
import { Readable } from "node:stream";
import type { S3ClientConfig } from "@aws-sdk/client-s3";
import type { S3Config } from "./config.ts";

/** What is put where. */
export interface S3Object {
  readonly key: string;
  readonly contentType: string;
  readonly body: Uint8Array;
  /** Headers of this object besides those of the settings. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A request whose signature covers all of it; to be sent as it is. */
export interface SignedPut {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The bucket's address: a host of its own at Amazon's where its name may be one, else that of all buckets. */
export function bucketUrl({ bucketName, region, endpoint }: S3Config): URL {
  if (endpoint !== undefined) return new URL(endpoint);
  const host = hostOf(region);
  return new URL(`https://${isHostLabel(bucketName) ? `${bucketName}.${host}` : host}`);
}

/** Signs the putting of an object, by Signature Version 4 at a time in Unix milliseconds. */
export async function signPut(object: S3Object, config: S3Config, nowMs: number): Promise<SignedPut> {
  // Large, and most destinations are of another type.
  const { PutObjectCommand, S3Client } = await import("@aws-sdk/client-s3");
  let signed: SignedPut | undefined;
  const client = new S3Client({
    ...clientSettings(config),
    systemClockOffset: nowMs - Date.now(),
    requestHandler: {
      handle: async (request: WrittenRequest) => {
        // It would name our machine to the receiver; the signature does not cover it.
        const { "user-agent": _, ...headers } = request.headers;
        signed = { url: urlOf(request), headers };
        return { response: { statusCode: 200, headers: {}, body: Readable.from([]) } };
      },
    },
  });
  const added = { ...config.headers, ...object.headers };
  client.middlewareStack.add(
    (next) => (args) => {
      Object.assign((args.request as WrittenRequest).headers, added);
      return next(args);
    },
    { step: "build" },
  );
  const { key: Key, contentType: ContentType, body: Body } = object;
  await client.send(new PutObjectCommand({ Bucket: config.bucketName, Key, ContentType, Body }));
  client.destroy();
  if (signed === undefined) throw new Error("the client sent nothing");
  return signed;
}

/** The parts of the client's own requests that are read. */
interface WrittenRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Record<string, string>;
}

function urlOf({ protocol, hostname, port, path, query }: WrittenRequest): string {
  const pairs = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join("="));
  const origin = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}`;
  return `${origin}${path}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
}

/** Everything that the client would otherwise look up in the environment or in files. */
function clientSettings(config: S3Config): S3ClientConfig {
  const { accessKeyId, secretAccessKey, sessionToken, region, endpoint, bucketName } = config;
  return {
    region,
    endpoint: endpoint ?? `https://${hostOf(region)}`,
    forcePathStyle: endpoint !== undefined || !isHostLabel(bucketName),
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) },
    maxAttempts: 1,
    retryMode: "standard",
    defaultsMode: "standard",
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    expectContinueHeader: false,
    followRegionRedirects: false,
    useArnRegion: false,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    disableS3ExpressSessionAuth: true,
    disableMultiregionAccessPoints: true,
    authSchemePreference: ["aws.auth#sigv4"],
    sigv4aSigningRegionSet: [region],
    userAgentAppId: "",
  };
}

function hostOf(region: string): string {
  return `s3.${region}.${region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com"}`;
}

function isHostLabel(name: string): boolean {
  return /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name);
}
