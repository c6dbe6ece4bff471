import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { imageRequestParts } from "../../../gateway/images/request-parts.ts";
import {
  type GenerateResponse,
  GenerateResponseSchema,
  type GenerationFinishedSchema,
  type GenerationStartedSchema,
  TextPhase,
} from "../../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import { createRemoteTransport } from "../../../lib/rpc/client.ts";
import { startRpcServer } from "../../../lib/rpc/server.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import {
  type GatewayServer,
  type GatewayServerOptions,
  type ImageHandlers,
  imageRoutes,
  type PostOptions,
  post,
  rawRequest,
  startGatewayServer,
  testKeys,
} from "./gateway-server.ts";

/** The path of the image operation. */
export const imagesPath = "/api/v1/images";

/** The shortest body that is a request. */
export const leastImagesBody = { model: "acme/brush", prompt: "A lighthouse." };

/** Where a test's image service runs, and how its images come: in messages, or as in production in pieces of them. */
export const imagePlaces = ["in process", "behind a socket", "behind a socket, in pieces"] as const;

/** Limits above what any test sends, but not those of a production port. */
const messageLimits = { readMaxBytes: 64 << 20, writeMaxBytes: 64 << 20 };

/** A gateway in front of an image service that a test plays. */
export interface ImageGateway extends AsyncDisposable {
  readonly gateway: GatewayServer;
}

/** An image service that listens on a free port. */
export async function startImageServer(handlers: ImageHandlers) {
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: 0,
    services: [ImageService],
    routes: imageRoutes(handlers),
    limits: messageLimits,
    readiness: async () => [],
    log: silentLog,
  });
  return {
    baseUrl: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.drain({ delayMs: 0, timeoutMs: 0 }),
  };
}

/** Starts a gateway whose image service runs in that place. */
export async function startImageGateway(
  place: (typeof imagePlaces)[number],
  imageHandlers: ImageHandlers,
  settings: GatewayServerOptions["settings"] = {},
): Promise<ImageGateway> {
  const stack = new AsyncDisposableStack();
  const options: GatewayServerOptions = { settings };
  if (place === "in process") {
    options.imageHandlers = imageHandlers;
  } else {
    const { baseUrl } = stack.use(await startImageServer(imageHandlers));
    const piecewiseField = place === "behind a socket" ? undefined : GenerateResponseSchema.field.imageData;
    const requestParts = piecewiseField && imageRequestParts;
    options.imageTransport = createRemoteTransport({
      baseUrl,
      limits: messageLimits,
      piecewiseField,
      requestParts,
    });
  }
  const gateway = stack.use(await startGatewayServer(options));
  return { gateway, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** An image request with a good key. */
export function postImages(
  gateway: Pick<GatewayServer, "baseUrl">,
  body: unknown = leastImagesBody,
  options?: PostOptions,
): Promise<Response> {
  return post(gateway, { path: imagesPath, key: testKeys.images, body }, options);
}

/** The text of an image request with a good key, for a raw connection. */
export function rawImagesRequest(body: unknown = leastImagesBody): string {
  return rawRequest({ path: imagesPath, key: testKeys.images, body });
}

/** The first frame of an answer. */
export function imageStarted(
  fields: MessageInitShape<typeof GenerationStartedSchema> = {},
): GenerateResponse {
  const value = { generationId: "gen-img-1", ...fields };
  return create(GenerateResponseSchema, { frame: { case: "started", value } });
}

/** A preview. */
export function imagePartial(index: number, data: Uint8Array): GenerateResponse {
  const value = { index, data, mediaType: "image/png" };
  return create(GenerateResponseSchema, { frame: { case: "partial", value } });
}

/** A piece of text. */
export function imageText(text: string, phase: TextPhase = TextPhase.DRAFT): GenerateResponse {
  return create(GenerateResponseSchema, { frame: { case: "textChunk", value: { phase, text } } });
}

/** The beginning of an image. */
export function imageStart(index: number, sizeBytes: number, mediaType = "image/png"): GenerateResponse {
  const value = { index, mediaType, sizeBytes: BigInt(sizeBytes) };
  return create(GenerateResponseSchema, { frame: { case: "imageStart", value } });
}

/** Bytes of the image begun last. */
export function imageData(bytes: Uint8Array): GenerateResponse {
  return create(GenerateResponseSchema, { frame: { case: "imageData", value: bytes } });
}

/** The frames of a whole image, its bytes cut into pieces. */
export function wholeImage(
  index: number,
  bytes: Uint8Array,
  { mediaType = "image/png", pieceBytes = 1 << 20 } = {},
): GenerateResponse[] {
  const frames = [imageStart(index, bytes.length, mediaType)];
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    frames.push(imageData(bytes.subarray(from, from + pieceBytes)));
  }
  return frames;
}

/** The last frame of a whole answer. */
export function imageFinished(
  fields: MessageInitShape<typeof GenerationFinishedSchema> = {},
): GenerateResponse {
  const value = { promptTokens: 3n, completionTokens: 4n, costNanoUsd: 1_000_000n, ...fields };
  return create(GenerateResponseSchema, { frame: { case: "finished", value } });
}
