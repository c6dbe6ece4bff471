import { type DescFile, type DescMessage, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { file_media_error_v1_error_reason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/reflection/v1/reflection_pb.ts";
import type { RegisterRoutes } from "./registered-method.ts";

/**
 * grpc.reflection.v1 for the given services, so that grpcurl and `buf curl` need no proto files. Answers by file name
 * and by symbol with the file and all that it imports; extensions are not used here and answer not found.
 * Source: grpc/reflection/v1/reflection.proto of gRPC.
 */
export function reflectionRoutes(services: readonly DescService[]): RegisterRoutes {
  const files = new Map<string, DescFile>();
  // No service imports it, yet every error carries its message.
  collectFiles(file_media_error_v1_error_reason, files);
  for (const service of services) collectFiles(service.file, files);
  const fileBySymbol = new Map<string, DescFile>();
  for (const file of files.values()) indexSymbols(file, fileBySymbol);

  const answer = (request: ServerReflectionRequest["messageRequest"]) => {
    switch (request.case) {
      case "listServices": {
        const service = services.map(({ typeName }) => ({ name: typeName }));
        return { case: "listServicesResponse", value: { service } } as const;
      }
      case "fileByFilename":
        return fileAnswer(files.get(request.value));
      case "fileContainingSymbol":
        return fileAnswer(fileBySymbol.get(request.value));
      default:
        return notFound;
    }
  };
  return (router) =>
    router.service(ServerReflection, {
      async *serverReflectionInfo(requests) {
        for await (const originalRequest of requests) {
          const validHost = originalRequest.host;
          yield { validHost, originalRequest, messageResponse: answer(originalRequest.messageRequest) };
        }
      },
    });
}

const notFound = {
  case: "errorResponse",
  value: { errorCode: Code.NotFound, errorMessage: "not found" },
} as const;

function fileAnswer(file: DescFile | undefined) {
  if (file === undefined) return notFound;
  const needed = new Map<string, DescFile>();
  collectFiles(file, needed);
  const fileDescriptorProto = [...needed.values()].map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } } as const;
}

function collectFiles(file: DescFile, into: Map<string, DescFile>): void {
  if (into.has(file.proto.name)) return;
  into.set(file.proto.name, file);
  for (const dependency of file.dependencies) collectFiles(dependency, into);
}

function indexSymbols(file: DescFile, into: Map<string, DescFile>): void {
  for (const { typeName } of [...file.messages, ...file.enums, ...file.services]) into.set(typeName, file);
  for (const { typeName, methods } of file.services) {
    for (const method of methods) into.set(`${typeName}.${method.name}`, file);
  }
  for (const message of file.messages) indexNested(message, file, into);
}

function indexNested(message: DescMessage, file: DescFile, into: Map<string, DescFile>): void {
  for (const { typeName } of message.nestedEnums) into.set(typeName, file);
  for (const nested of message.nestedMessages) {
    into.set(nested.typeName, file);
    indexNested(nested, file, into);
  }
}
