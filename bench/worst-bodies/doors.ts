/** Everything that takes bodies, by its own description: operations of the REST interface, and RPCs. */
import { create, type DescMethod, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { SettleRequestSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { imageMessageLimits } from "../../lib/limits/image-messages.ts";
import { requestLimitsOf } from "../../lib/rpc/request/request-limits.ts";
import { callRaw } from "../../test/attack/raw-rpc.ts";
import { rpcOf, rpcServices } from "../../test/attack/rpc-services.ts";
import { type PlaceSchema, worstBodies } from "../../test/attack/worst-bodies.ts";
import { type WorstMessage, worstMessages } from "../../test/attack/worst-messages.ts";
import { testKeys } from "../../test/support/services/gateway-server.ts";

/** One of the worst bodies of a door. */
export interface DoorBody {
  readonly name: string;
  readonly bytes: number;
  /** Sends it; resolves with the status. */
  send(): Promise<string>;
}

/** Something that takes bodies. */
export interface Door {
  readonly name: string;
  /** Made one after the other, as they are wanted. */
  bodies(): AsyncIterable<DoorBody>;
}

/** Where the doors are. */
export interface Ports {
  readonly baseUrl: string;
  readonly rpcPort: number;
}

interface Operation {
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { schema: { $ref: string }; examples: Record<string, { value: object }> }>
    >;
  };
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, PlaceSchema>> };
}

const jsonType = "application/json";

/** Every operation of the REST interface that takes JSON, by its own document. */
export async function restDoors({ baseUrl }: Ports, maxBytes: number): Promise<readonly Door[]> {
  const document = (await (await fetch(`${baseUrl}/api/v1/openapi.json`)).json()) as OpenApi;
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const content = requestBody?.content[jsonType];
      if (content === undefined) return [];
      const schema = document.components.schemas[content.schema.$ref.split("/").at(-1) ?? ""] ?? {};
      const least = Object.values(content.examples)[0]?.value ?? {};
      const url = `${baseUrl}/api/v1${path.replace(/\{\w+\}/g, "ab".repeat(32))}`;
      const headers = { authorization: `Bearer ${keyFor(path)}`, "content-type": jsonType };
      const post = async (body: Buffer) => {
        const init = { method: method.toUpperCase(), headers, body: new Uint8Array(body) };
        const response = await fetch(url, init);
        return { status: String(response.status), text: await response.text() };
      };
      async function* bodies(): AsyncGenerator<DoorBody> {
        const most = await longestOf(post, least, maxBytes);
        for (const { name, make } of worstBodies(schema, least)) {
          const body = make(most);
          yield { name, bytes: body.length, send: async () => (await post(body)).status };
        }
      }
      return [{ name: `${method.toUpperCase()} ${path}`, bodies }];
    }),
  );
}

function keyFor(path: string): string {
  if (path.startsWith("/audio")) return testKeys.speech;
  return path.startsWith("/images") ? testKeys.images : testKeys.management;
}

/** The longest body that is not refused for its length, within a factor of two. */
async function longestOf(
  post: (body: Buffer) => Promise<{ text: string }>,
  least: object,
  maxBytes: number,
): Promise<number> {
  for (let bytes = maxBytes; bytes > 1; bytes /= 2) {
    const { text } = await post(Buffer.from(JSON.stringify({ ...least, zz: "x".repeat(bytes - 512) })));
    if (!text.includes("body_too_large")) return bytes;
  }
  throw new Error("no body is taken");
}

/** What stands around what is worst in a message. */
const roomBytes = 1024;
/** Batches of our own processes, bounded by what these put into them. */
const batches: readonly DescMethod[] = [
  AccountInternalService.method.reserve,
  AccountInternalService.method.settle,
];

/** Every RPC, at a port that takes as much as one of images does. */
export function rpcDoors({ rpcPort }: Ports, maxBytes: number): readonly Door[] {
  return rpcServices.flatMap(({ methods }) =>
    methods.map((method) => {
      const limits = requestLimitsOf(method, imageMessageLimits(maxBytes).readMaxBytes);
      const most = Math.min(limits.maxBytes, maxBytes) - roomBytes;
      async function* bodies(): AsyncGenerator<DoorBody> {
        const messages = batches.includes(method) ? [fullBatch()] : worstMessages(method, most);
        for (const { name, format, bytes: message } of messages) {
          const protocol = method.methodKind === "unary" ? "Connect" : "Connect stream";
          const call = { protocol, rpc: rpcOf(method), format, message } as const;
          const send = async () => {
            const { status, error } = await callRaw(rpcPort, call);
            return error === "" ? String(status) : error;
          };
          yield { name, bytes: message.length, send };
        }
      }
      return { name: rpcOf(method), bodies };
    }),
  );
}

/** As AccountHolds makes it of the densest traces: no more than twelve of them, with 1,024 values each. */
function fullBatch(): WorstMessage {
  const trace: JsonObject = { a: Array<string>(1023).fill("") };
  const events = Array.from({ length: 12 }, () => ({ trace }));
  const bytes = Buffer.from(toBinary(SettleRequestSchema, create(SettleRequestSchema, { events })));
  return { name: "a full batch of the densest traces", format: "proto", bytes };
}
