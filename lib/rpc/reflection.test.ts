import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/reflection/v1/reflection_pb.ts";
import {
  type SpeechServer,
  startSpeechServer,
  stockTransport,
} from "../../test/support/services/speech-server.ts";

type Question = ServerReflectionRequest["messageRequest"];

/** Asks all questions on one stream, as reflection clients do. */
async function ask(server: SpeechServer, ...questions: Question[]) {
  const client = createClient(ServerReflection, stockTransport("gRPC", server.baseUrl));
  async function* requests() {
    for (const messageRequest of questions) yield { host: "here", messageRequest };
  }
  const answers = [];
  for await (const response of client.serverReflectionInfo(requests())) answers.push(response);
  return answers;
}

function descriptorsOf(answer: Awaited<ReturnType<typeof ask>>[number] | undefined) {
  const response = answer?.messageResponse;
  if (response?.case !== "fileDescriptorResponse") throw new Error(`answered ${response?.case}`);
  return response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
}

/** What is imported before what imports it, as a set of files must be. */
function inOrderOfImport(files: readonly FileDescriptorProto[]): FileDescriptorProto[] {
  const sorted = new Set<FileDescriptorProto>();
  const add = (file: FileDescriptorProto | undefined) => {
    if (file === undefined || sorted.has(file)) return;
    for (const path of file.dependency) add(files.find(({ name }) => name === path));
    sorted.add(file);
  };
  files.forEach(add);
  return [...sorted];
}

describe("reflection", () => {
  test("lists the services and health", async () => {
    await using server = await startSpeechServer({ services: [SpeechService, AccountInternalService] });
    const [answer] = await ask(server, { case: "listServices", value: "*" });
    expect(answer?.validHost).toBe("here");
    expect(answer?.messageResponse).toMatchObject({
      case: "listServicesResponse",
      value: {
        service: [SpeechService, AccountInternalService, Health].map(({ typeName }) => ({ name: typeName })),
      },
    });
  });

  test.for([
    "media.speech.v1.SpeechService",
    "media.speech.v1.SpeechService.Synthesize",
    "media.speech.v1.SynthesizeRequest",
    "media.speech.v1.AudioFormat",
    "media.error.v1.ErrorDetail",
    "google.protobuf.Struct",
    "grpc.health.v1.HealthCheckResponse.ServingStatus",
  ])("answers %s with a set of files that is whole", async (symbol) => {
    await using server = await startSpeechServer({ services: [SpeechService] });
    const [answer] = await ask(server, { case: "fileContainingSymbol", value: symbol });
    const file = inOrderOfImport(descriptorsOf(answer));
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
    const [name, method] = symbol.endsWith("Synthesize") ? [SpeechService.typeName, "Synthesize"] : [symbol];
    const found = registry.get(name);
    expect(found?.typeName).toBe(name);
    if (method !== undefined && found?.kind === "service") {
      expect(found.methods.map((candidate) => candidate.name)).toContain(method);
    }
  });

  test("answers every file that a service needs by its name", async () => {
    await using server = await startSpeechServer();
    const [first] = await ask(server, { case: "fileContainingSymbol", value: SpeechService.typeName });
    const names = descriptorsOf(first).map(({ name }) => name);
    expect(names).toContain("google/protobuf/struct.proto");
    const answers = await ask(server, ...names.map((value) => ({ case: "fileByFilename", value }) as const));
    expect(answers.map((answer) => descriptorsOf(answer)[0]?.name)).toEqual(names);
  });

  test("says not found, and goes on with the stream", async () => {
    await using server = await startSpeechServer();
    const answers = await ask(
      server,
      { case: "fileContainingSymbol", value: "acme.v1.Unknown" },
      { case: "fileByFilename", value: "acme.proto" },
      { case: "allExtensionNumbersOfType", value: "media.speech.v1.Voice" },
      { case: "listServices", value: "" },
    );
    const notFound = { case: "errorResponse", value: { errorCode: 5 } };
    expect(answers.map(({ messageResponse }) => messageResponse)).toMatchObject([
      notFound,
      notFound,
      notFound,
      { case: "listServicesResponse" },
    ]);
  });

  test.for(["grpc", "grpcweb", "connect"])(
    "lets buf curl call over %s without a proto file",
    async (protocol) => {
      await using server = await startSpeechServer();
      const buf = fileURLToPath(new URL("../../node_modules/.bin/buf", import.meta.url));
      const options = ["--protocol", protocol, "--http2-prior-knowledge", "--data", '{"input":"Hello."}'];
      const url = `${server.baseUrl}/media.speech.v1.SpeechService/Synthesize`;
      const { stdout } = await promisify(execFile)(buf, ["curl", ...options, url], { cwd: tmpdir() });
      expect(JSON.parse(stdout)).toEqual({ audio: "AA==" });
    },
  );
});
