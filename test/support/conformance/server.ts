/**
 * The server under test of the conformance suite: our RPC port, started as the suite asks on standard input. Where it
 * listens is said on standard output; both are messages behind four bytes that say how long they are.
 */
import { readFileSync } from "node:fs";
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { defaultMessageLimits } from "../../../lib/rpc/registered-method.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { conformanceHandlers } from "./service.ts";

const descriptors = readFileSync(process.argv[2] ?? "");
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
const found = registry.getService("connectrpc.conformance.v1.ConformanceService");
if (found === undefined) throw new TypeError("the descriptors have no such service");
const service = found;

interface Asked extends Message {
  readonly messageReceiveLimit: number;
  readonly serverCreds?: { readonly cert: Uint8Array; readonly key: Uint8Array };
}

function messageNamed(name: string): DescMessage {
  const message = registry.getMessage(`connectrpc.conformance.v1.${name}`);
  if (message === undefined) throw new TypeError(`the descriptors have no ${name}`);
  return message;
}

async function readAsked(): Promise<Asked> {
  let come = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    come = Buffer.concat([come, chunk as Buffer]);
    if (come.length >= 4 && come.length >= 4 + come.readUInt32BE(0)) break;
  }
  return fromBinary(messageNamed("ServerCompatRequest"), come.subarray(4)) as Asked;
}

const { messageReceiveLimit, serverCreds } = await readAsked();
const { readMaxBytes } = defaultMessageLimits;
const tls = serverCreds && { cert: Buffer.from(serverCreds.cert), key: Buffer.from(serverCreds.key) };
const server = await startRpcServer({
  host: "127.0.0.1",
  port: 0,
  services: [service],
  routes: (router) => router.service(service, conformanceHandlers(service) as never),
  limits: { ...defaultMessageLimits, readMaxBytes: messageReceiveLimit || readMaxBytes },
  ...(tls && { tls }),
  readiness: async () => [],
  log: silentLog,
});
const schema = messageNamed("ServerCompatResponse");
const said = create(schema, { host: "127.0.0.1", port: server.port, pemCert: serverCreds?.cert } as never);
const bytes = toBinary(schema, said);
const size = Buffer.alloc(4);
size.writeUInt32BE(bytes.length);
process.stdout.write(Buffer.concat([size, bytes]));
process.on("SIGTERM", () => process.exit());
