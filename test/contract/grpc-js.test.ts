/** A gRPC client that knows the services by nothing but what the server's reflection says. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescService,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import {
  AnySchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ErrorDetail,
  ErrorDetailSchema,
  ErrorReason,
} from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../gen/reflection/v1/reflection_pb.ts";
import { openSharedStandalone, type SharedStandalone } from "../support/processes/shared-standalone.ts";
import { bytesOf, speak } from "../support/processes/standalone.ts";

const local = { model: "local/flite", input: "Hello.", responseFormat: "AUDIO_FORMAT_PCM" };
const remote = { model: "openai/tts-1", voice: "alloy" };

let stack: SharedStandalone;
let channel: grpc.Client;
let registry: FileRegistry;
let speech: DescService;

beforeAll(async () => {
  stack = await openSharedStandalone();
  channel = new grpc.Client(`127.0.0.1:${stack.rpcPort}`, grpc.credentials.createInsecure());
  registry = await reflectFiles("media.speech.v1.SpeechService");
  speech = registry.getService("media.speech.v1.SpeechService") as DescService;
});

afterAll(async () => {
  channel.close();
});

function ask(question: ServerReflectionRequest["messageRequest"]) {
  const stream = channel.makeBidiStreamRequest(
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    (request: ServerReflectionRequest) => Buffer.from(toBinary(ServerReflectionRequestSchema, request)),
    (bytes: Buffer) => fromBinary(ServerReflectionResponseSchema, bytes),
  );
  stream.end(create(ServerReflectionRequestSchema, { messageRequest: question }));
  return Array.fromAsync(stream as AsyncIterable<ServerReflectionResponse>);
}

async function reflectFiles(symbol: string): Promise<FileRegistry> {
  const [answer] = await ask({ case: "fileContainingSymbol", value: symbol });
  const response = answer?.messageResponse;
  if (response?.case !== "fileDescriptorResponse") throw new Error(`reflection answered ${response?.case}`);
  const files = response.value.fileDescriptorProto.map((bytes) =>
    fromBinary(FileDescriptorProtoSchema, bytes),
  );
  const sorted = new Set<FileDescriptorProto>();
  const add = (file: FileDescriptorProto | undefined) => {
    if (file === undefined || sorted.has(file)) return;
    for (const path of file.dependency) add(files.find(({ name }) => name === path));
    sorted.add(file);
  };
  files.forEach(add);
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [...sorted] }));
}

interface Answer {
  readonly messages: Record<string, JsonValue>[];
  readonly status: grpc.StatusObject;
}

/** Calls a method of either kind with JSON, to its end. */
async function call(methodName: string, request: JsonValue, key?: string): Promise<Answer> {
  const method = speech.methods.find(({ name }) => name === methodName) as DescMethod;
  const metadata = new grpc.Metadata();
  if (key !== undefined) metadata.set("authorization", `Bearer ${key}`);
  const stream = channel.makeServerStreamRequest(
    `/${method.parent.typeName}/${method.name}`,
    (json: JsonValue) => Buffer.from(toBinary(method.input, fromJson(method.input, json, { registry }))),
    (bytes: Buffer) => toJson(method.output, fromBinary(method.output, bytes), { registry }),
    request,
    metadata,
  );
  const messages: Answer["messages"] = [];
  stream.on("data", (message: Answer["messages"][number]) => messages.push(message));
  stream.on("error", () => undefined);
  const status = await new Promise<grpc.StatusObject>((resolve) => stream.on("status", resolve));
  return { messages, status };
}

/** The ErrorDetail in a google.rpc.Status, whose third field is a list of Any. */
function detailOf({ metadata }: grpc.StatusObject): ErrorDetail | undefined {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!Buffer.isBuffer(bytes)) return undefined;
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field !== 3) reader.skip(wireType, field);
    else {
      const { typeUrl, value } = fromBinary(AnySchema, reader.bytes());
      if (typeUrl.endsWith(`/${ErrorDetailSchema.typeName}`)) return fromBinary(ErrorDetailSchema, value);
    }
  }
  return undefined;
}

describe("grpc-js with reflection alone", () => {
  test("finds all services", async () => {
    const [answer] = await ask({ case: "listServices", value: "*" });
    const response = answer?.messageResponse;
    const names =
      response?.case === "listServicesResponse" ? response.value.service.map(({ name }) => name) : [];
    expect(names).toEqual(
      expect.arrayContaining([
        "media.account.v1.AccountAdminService",
        "media.account.v1.AccountInternalService",
        "media.account.v1.KeyService",
        "media.speech.v1.SpeechService",
      ]),
    );
  });

  test("lists the models", async () => {
    const { messages, status } = await call("ListSpeechModels", {}, stack.managementKey);
    expect(status.code).toBe(grpc.status.OK);
    expect(messages).toMatchObject([{ models: [{ id: "local/flite" }, {}, {}, {}] }]);
  });

  test("hears what REST gives, frame by frame", async () => {
    const { messages, status } = await call("Synthesize", local, stack.inferenceKey);
    expect(status.code).toBe(grpc.status.OK);
    expect(messages.map((message) => Object.keys(message)[0])).toEqual([
      "started",
      ...messages.slice(1, -1).map(() => "audio"),
      "finished",
    ]);
    expect(messages[0]?.started).toMatchObject({ format: "AUDIO_FORMAT_PCM", sampleRateHz: 24_000 });
    const audio = Buffer.concat(
      messages.map((message) => Buffer.from(String(message.audio ?? ""), "base64")),
    );
    const rest = await speak(stack, stack.inferenceKey, { ...local, response_format: "pcm" });
    expect(audio.equals(await bytesOf(rest))).toBe(true);
  });

  test.for<[string, string | undefined, object, grpc.status, ErrorReason]>([
    ["no key", undefined, local, grpc.status.UNAUTHENTICATED, ErrorReason.KEY_MISSING],
    ["no such model", "key", { ...local, model: "a/b" }, grpc.status.NOT_FOUND, ErrorReason.MODEL_UNKNOWN],
    ["no text", "key", { ...local, input: "" }, grpc.status.INVALID_ARGUMENT, ErrorReason.INVALID_BODY],
    [
      "a provider that fails",
      "key",
      { ...remote, input: "[[status=500]]" },
      grpc.status.ABORTED,
      ErrorReason.PROVIDER_FAILED,
    ],
    [
      "a provider that breaks off",
      "key",
      { ...remote, input: "[[cut=8192]]" },
      grpc.status.ABORTED,
      ErrorReason.PROVIDER_FAILED,
    ],
  ])("reads status and detail of an error: %s", async ([, key, request, code, reason]) => {
    const { messages, status } = await call(
      "Synthesize",
      request as JsonValue,
      key === undefined ? undefined : stack.inferenceKey,
    );
    expect(status.code).toBe(code);
    expect(detailOf(status)).toMatchObject({ reason });
    expect(messages.some((message) => "finished" in message)).toBe(false);
  });
});

test("buf curl calls as docs/using.md shows", async () => {
  const buf = fileURLToPath(new URL("../../node_modules/.bin/buf", import.meta.url));
  const args = ["curl", "--http2-prior-knowledge", "-H", `Authorization: Bearer ${stack.inferenceKey}`];
  const url = `${stack.rpcUrl}/media.speech.v1.SpeechService/Synthesize`;
  const { stdout } = await promisify(execFile)(buf, [...args, "--data", JSON.stringify(local), url], {
    cwd: tmpdir(),
    maxBuffer: 1 << 26,
  });
  expect(stdout).toMatch(/"started".*"audio".*"finished"/s);
});
