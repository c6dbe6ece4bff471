/**
 * A bucket of an S3 server that other people wrote (s3rver), which verifies signatures by itself, behind a stand-in that
 * keeps a log, misbehaves when told to, and checks what that server leaves unchecked: the body's digest.
 */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReceivedRequest } from "../stand-in/stand-in-server.ts";
import { type Receiver, type ReceiverVerdict, refuse, startReceiver } from "./receiver.ts";

/** A running store with one bucket. */
export interface S3Receiver extends Receiver {
  readonly bucketName: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** An object's bytes and content type; undefined when there is none. */
  objectAt(key: string): Promise<{ body: Buffer; contentType: string | undefined } | undefined>;
  /** The keys of all objects. */
  keys(): Promise<string[]>;
}

interface S3Server {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
}

type S3ServerClass = new (options: {
  readonly address: string;
  readonly port: number;
  readonly silent: boolean;
  readonly directory: string;
  readonly vhostBuckets: boolean;
  readonly configureBuckets: readonly { readonly name: string }[];
}) => S3Server;

const bucketName = "traces";
/** The one account that the server has. */
const account = "S3RVER";

/** Starts it. */
export async function startS3Receiver(): Promise<S3Receiver> {
  const S3rver = createRequire(import.meta.url)("@20minutes/s3rver") as S3ServerClass;
  const directory = await mkdtemp(join(tmpdir(), "s3-receiver-"));
  const server = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: bucketName }],
  });
  const { port } = await server.run();
  const receiver = await startReceiver({ judge: (request) => judge(port, request) });
  return {
    ...receiver,
    bucketName,
    accessKeyId: account,
    secretAccessKey: account,
    async objectAt(key) {
      const path = `/${bucketName}/${key.split("/").map(encodeURIComponent).join("/")}`;
      const { status, headers, body } = await ask(port, { method: "GET", path, headers: {} });
      return status === 200 ? { body, contentType: headers["content-type"] } : undefined;
    },
    async keys() {
      const { body } = await ask(port, { method: "GET", path: `/${bucketName}?list-type=2`, headers: {} });
      return [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
    },
    async close() {
      await receiver.close();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}

/** Without a signature the server would take anything. */
async function judge(port: number, request: ReceivedRequest): Promise<ReceiverVerdict> {
  const { method, headers, bytes } = request;
  if (headers.authorization === undefined) return refuse(403, errorXml("AccessDenied"), xml);
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (headers["x-amz-content-sha256"] !== digest) {
    return refuse(400, errorXml("XAmzContentSHA256Mismatch"), xml);
  }
  if (method !== "PUT") return refuse(405, errorXml("MethodNotAllowed"), xml);
  return await ask(port, request).then((answer) => ({ ...answer, isTaken: answer.status === 200 }));
}

const xml = { "content-type": "application/xml" };

function errorXml(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code></Error>`;
}

/** Hands a request on as it came, `host` included, which the signature covers. */
function ask(
  port: number,
  { method, path, headers, bytes }: Pick<ReceivedRequest, "method" | "path" | "headers"> & { bytes?: Buffer },
): Promise<{ status: number; headers: Record<string, string>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: "127.0.0.1", port, method, path, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () => {
        const { etag, "content-type": contentType } = response.headers;
        resolve({
          status: response.statusCode ?? 0,
          headers: {
            ...(etag === undefined ? {} : { etag }),
            ...(contentType === undefined ? {} : { "content-type": contentType }),
          },
          body: Buffer.concat(pieces),
        });
      });
    });
    request.on("error", reject);
    request.end(bytes);
  });
}
