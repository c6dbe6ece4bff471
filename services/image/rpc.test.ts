import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Interceptor, Transport } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  GenerateRequestSchema,
  type GenerateResponse,
  GenerateResponseSchema,
} from "../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { createLocalTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { Service } from "../../lib/service/run-service.ts";
import {
  FakePainter,
  fakeImageProviders,
  type ImageEndpointChanges,
  image,
  imageCatalogOf,
  imageEndpoint,
  type PainterScript,
  partial,
  pngBytes,
} from "../../test/fakes/fake-image.ts";
import { FakePaidRequests } from "../../test/fakes/fake-paid-requests.ts";
import { unlimited } from "../../test/fakes/unlimited.ts";
import {
  stockTransport,
  type TransportName,
  transportNames,
} from "../../test/support/services/speech-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createImageService } from "./image-service.ts";

const mebibyte = 1 << 20;
const maxBodyBytes = 4 * mebibyte;
const inferenceKey = { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.IMAGES] };
const boat = { prompt: "A boat.", model: "acme/brush" };

type PrincipalFields = MessageInitShape<typeof PrincipalSchema>;

function serve(
  script?: PainterScript,
  principal: PrincipalFields = inferenceKey,
  endpoint: ImageEndpointChanges = {},
) {
  const painter = new FakePainter(script);
  const service = createImageService({
    catalog: imageCatalogOf(
      imageEndpoint(endpoint),
      imageEndpoint({ providerSlug: "zenith", model: "zenith/pen", id: "pen" }),
    ),
    providers: fakeImageProviders({ acme: painter, zenith: undefined }),
    limits: { timeoutMs: 60_000 },
    paid: new FakePaidRequests(),
    limiter: unlimited,
    recordProviderTest: async () => undefined,
    maxBodyBytes,
    maxInflightReferenceBytes: 256 * mebibyte,
    fetchReference: { fetch: () => Promise.reject(new Error("nothing is fetched here")) },
    authenticateKey: async () => create(PrincipalSchema, principal),
    verifyToken: () => Promise.reject(new Error("nobody has a token")),
    log: silentLog,
  });
  return { painter, service };
}

const bearer: Interceptor = (next) => (request) => {
  request.header.set("authorization", "Bearer sk-a-key");
  return next(request);
};

/** Runs `body` with a client of the service, in this process or over a stock transport. */
async function reach(
  name: TransportName | "in the process",
  service: Service,
  body: (client: ReturnType<typeof clientOf>) => Promise<void>,
): Promise<void> {
  if (name === "in the process") {
    await body(clientOf(createLocalTransport(service.routes, { interceptors: [bearer] })));
    return;
  }
  await onPort(service, (port) =>
    body(clientOf(stockTransport(name, `http://127.0.0.1:${port}`), { authorization: "Bearer sk-a-key" })),
  );
}

async function onPort(service: Service, body: (port: number) => Promise<void>): Promise<void> {
  const server = await startRpcServer({ ...service, host: "127.0.0.1", port: 0, log: silentLog });
  try {
    await body(server.port);
  } finally {
    await server.drain({ delayMs: 0, timeoutMs: 0 });
  }
}

function clientOf(transport: Transport, headers: Record<string, string> = {}) {
  const client = createRpcClient(ImageService, transport);
  return {
    generate: (request: MessageInitShape<typeof GenerateRequestSchema>, signal?: AbortSignal) =>
      client.generate(request, { headers, ...(signal === undefined ? {} : { signal }) }),
    list: () => client.listImageModels({}, { headers }),
  };
}

function imagesOf(frames: readonly GenerateResponse[]): Buffer[] {
  const images: Uint8Array[][] = [];
  for (const { frame } of frames) {
    if (frame.case === "imageStart") images.push([]);
    else if (frame.case === "imageData") images.at(-1)?.push(frame.value);
  }
  return images.map((pieces) => Buffer.concat(pieces));
}

const failureOf = (frames: AsyncIterable<GenerateResponse>) =>
  Array.fromAsync(frames).then(
    () => undefined,
    (thrown: unknown) => (thrown instanceof DomainError ? thrown : undefined),
  );

describe.for(["in the process", ...transportNames] as const)("the image service, %s,", (name) => {
  const large = pngBytes(2 * mebibyte + 77, 9);

  test("answers with a start, previews, images byte for byte, and an end", async () => {
    const output = [partial(0, 3 * mebibyte), image(large), image(pngBytes(99))];
    const { service } = serve({ output, usage: { prompt: 3, completion: 5 } });
    await reach(name, service, async (client) => {
      const frames = await Array.fromAsync(client.generate({ ...boat, n: 2, stream: true }));
      expect(frames.map(({ frame }) => frame.case)).toEqual([
        "started",
        "partial",
        "imageStart",
        ...["imageData", "imageData", "imageData"],
        ...["imageStart", "imageData", "finished"],
      ]);
      expect(frames[0]?.frame).toMatchObject({
        value: {
          generationId: expect.stringMatching(/^gen-img-/),
          endpoint: { endpointId: "endpoint-of-acme", model: "acme/brush", providerSlug: "acme" },
          streaming: true,
          ignoredParameters: [],
        },
      });
      expect(frames[2]?.frame.value).toMatchObject({ index: 0, sizeBytes: BigInt(large.length) });
      const [first, second] = imagesOf(frames);
      expect([first?.equals(large), second?.equals(pngBytes(99))]).toEqual([true, true]);
      expect(frames.at(-1)?.frame.value).toMatchObject({ promptTokens: 3n, completionTokens: 5n });
    });
  });

  test("names the faults of a request, and asks nobody", async () => {
    const { service, painter } = serve();
    await reach(name, service, async (client) => {
      const invalid = await failureOf(client.generate({ n: 11 }));
      expect(invalid?.reason).toBe(ErrorReason.INVALID_BODY);
      expect(invalid?.issues.map(({ path }) => path)).toEqual(["model", "prompt", "n"]);
      const conflict = await failureOf(client.generate({ ...boat, size: "1024x1024", aspectRatio: "16:9" }));
      expect(conflict).toMatchObject({
        reason: ErrorReason.SIZE_CONFLICT,
        issues: [{ path: "aspect_ratio" }],
      });
      const unknown = await failureOf(client.generate({ ...boat, model: "acme/none" }));
      expect(unknown?.reason).toBe(ErrorReason.MODEL_UNKNOWN);
      expect(painter.seen).toEqual([]);
    });
  });

  test("lists the models whose providers are on", async () => {
    await reach(name, serve().service, async (client) => {
      const { models } = await client.list();
      expect(models.map(({ id }) => id)).toEqual(["acme/brush"]);
    });
  });

  test("ends the work of a provider that bills no cancelled work when the caller gives up, with nobody reading", async () => {
    const script = { output: [partial(), "silence", image()] } as const;
    const { service, painter } = serve(script, inferenceKey, { cancel: "free" });
    await reach(name, service, async (client) => {
      const caller = new AbortController();
      const frames = client.generate({ ...boat, stream: true }, caller.signal)[Symbol.asyncIterator]();
      await frames.next();
      expect(painter.seen[0]?.signal.aborted).toBe(false);
      caller.abort();
      await waitUntil(() => painter.seen[0]?.signal.aborted);
    });
  });
});

describe("the messages", () => {
  const referenceOf = (bytes: number) => ({
    source: { case: "data" as const, value: pngBytes(bytes) },
  });

  test.for(transportNames)("may be as large as a body and a little, and no larger: %s", async (name) => {
    const { service } = serve();
    await reach(name, service, async (client) => {
      // JSON carries bytes in base64.
      const bytes = name.includes("JSON") ? (maxBodyBytes / 4) * 3 : maxBodyBytes;
      const fits = await failureOf(client.generate({ ...boat, inputReferences: [referenceOf(bytes)] }));
      expect(fits?.reason).toBe(ErrorReason.REFERENCE_REFUSED);
    });
    // A session that was told of a message too large is of no more use, so it is a new one.
    await reach(name, service, async (client) => {
      const tooLarge = client.generate({ ...boat, inputReferences: [referenceOf(maxBodyBytes * 2)] });
      const failure = await failureOf(tooLarge);
      expect(failure?.reason).not.toBe(ErrorReason.REFERENCE_REFUSED);
      expect(failure).toBeDefined();
    });
  });
});

describe("a caller", () => {
  test.for<[string, PrincipalFields, ErrorReason]>([
    ["a management key", { keyKind: KeyKind.MANAGEMENT }, ErrorReason.INFERENCE_KEY_REQUIRED],
    [
      "a key for speech alone",
      { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.SPEECH] },
      ErrorReason.SCOPE_MISSING,
    ],
  ])("with %s reaches no provider", async ([, principal, reason]) => {
    const { service, painter } = serve(undefined, principal);
    await reach("in the process", service, async (client) => {
      expect((await failureOf(client.generate(boat)))?.reason).toBe(reason);
      expect(painter.seen).toEqual([]);
    });
  });

  test("is not ready when every provider is off", async () => {
    expect(await serve().service.readiness()).toEqual([]);
    const options = {
      limits: { timeoutMs: 1 },
      paid: new FakePaidRequests(),
      limiter: unlimited,
      recordProviderTest: async () => undefined,
      maxBodyBytes,
      maxInflightReferenceBytes: 256 * mebibyte,
      log: silentLog,
    };
    const service = createImageService({
      ...options,
      catalog: imageCatalogOf(imageEndpoint()),
      providers: fakeImageProviders({ acme: undefined }),
      fetchReference: { fetch: () => Promise.reject(new Error("nothing is fetched here")) },
      authenticateKey: () => Promise.reject(new Error("nobody calls")),
      verifyToken: () => Promise.reject(new Error("nobody calls")),
    });
    expect(await service.readiness()).toEqual(["no image model: every provider is off"]);
  });
});

describe("a standard gRPC client with its default limits", () => {
  let picture: Buffer;

  beforeAll(async () => {
    const side = 4096;
    // Noise, so that no encoder makes it small.
    const pixels = Buffer.alloc(side * side * 3);
    let state = 1;
    for (let at = 0; at < pixels.length; at += 3) {
      state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
      pixels.writeUIntLE(state & 0xffffff, at, 3);
    }
    const raw = { width: side, height: side, channels: 3 } as const;
    picture = await sharp(pixels, { raw }).png({ compressionLevel: 0 }).toBuffer();
  });

  test("takes an image of 4096 × 4096 byte for byte", async () => {
    expect(picture.length).toBeGreaterThan(40 * mebibyte);
    const { service } = serve({ output: [partial(0, 3 * mebibyte), image(picture)] });
    await onPort(service, async (port) => {
      const channel = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
      const metadata = new grpc.Metadata();
      metadata.set("authorization", "Bearer sk-a-key");
      const stream = channel.makeServerStreamRequest(
        "/media.image.v1.ImageService/Generate",
        (request: MessageInitShape<typeof GenerateRequestSchema>) =>
          Buffer.from(toBinary(GenerateRequestSchema, create(GenerateRequestSchema, request))),
        (bytes: Buffer) => fromBinary(GenerateResponseSchema, bytes),
        { ...boat, stream: true, size: "4096x4096" },
        metadata,
      );
      try {
        const frames = (await Array.fromAsync(stream)) as GenerateResponse[];
        expect(frames.at(1)?.frame.case).toBe("partial");
        expect(imagesOf(frames)[0]?.equals(picture)).toBe(true);
        expect(frames.at(-1)?.frame.case).toBe("finished");
      } finally {
        channel.close();
      }
    });
  });
});
