import { readFile } from "node:fs/promises";
import {
  create,
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import type { SelfSignedCertificate } from "../self-signed-certificate.ts";
import { conformanceHandlers } from "./service.ts";

const packageName = "connectrpc.conformance.v1";

/** Our RPC port with the suite's service on it. */
export interface ConformanceServer {
  /** What a server under test says on its standard output: a message behind four bytes that say how long it is. */
  readonly response: Buffer;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts it, with TLS where a certificate is given; the service is known by the descriptors in a file. */
export async function startConformanceServer(
  descriptors: string,
  tls: SelfSignedCertificate | undefined,
): Promise<ConformanceServer> {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, await readFile(descriptors)));
  const service = registry.getService(`${packageName}.ConformanceService`);
  if (service === undefined) throw new TypeError("the descriptors have no such service");
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [service],
    routes: (router) => router.service(service, conformanceHandlers(service) as never),
    ...(tls && { tls }),
    readiness: async () => [],
    log: silentLog,
  });
  const schema = messageNamed(registry, "ServerCompatResponse");
  const fields = { host: "127.0.0.1", port: server.port, pemCert: tls?.cert };
  const said = toBinary(schema, create(schema, fields as never));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(said.length);
  return {
    response: Buffer.concat([size, said]),
    [Symbol.asyncDispose]: () => server.drain({ delayMs: 0, timeoutMs: 0 }),
  };
}

function messageNamed(registry: FileRegistry, name: string): DescMessage {
  const message = registry.getMessage(`${packageName}.${name}`);
  if (message === undefined) throw new TypeError(`the descriptors have no ${name}`);
  return message;
}
