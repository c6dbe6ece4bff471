import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client, Interceptor, Transport } from "@connectrpc/connect";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { KeyKind, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  type GenerateRequestSchema,
  type GenerateResponse,
  ImageBackground,
  ImageFormat,
  ImageResolution,
} from "../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { createGuardedFetch } from "../../lib/http/guarded-fetch.ts";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import { createLocalTransport, createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { builtInCatalogDirectory, loadCatalog } from "../../providers/catalog/load.ts";
import { createProviders } from "../../providers/registry.ts";
import { FakePaidRequests } from "../../test/fakes/fake-paid-requests.ts";
import { unlimited } from "../../test/fakes/unlimited.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../test/upstreams/openai.ts";
import { createImageService, type RunnableImageService } from "./image-service.ts";

const maxBodyBytes = 32 << 20;
const flare = { model: "openai/gpt-image-2.5-flare", prompt: "A boat." };
const listed = { model: "openai/gpt-image-1.5", prompt: "A boat." };

/** A client of the service, the vendor behind it, and what the service logged. */
interface Scene {
  readonly client: Client<typeof ImageService>;
  readonly upstream: OpenAiUpstream;
  readonly logged: readonly string[];
  readonly paid: FakePaidRequests;
}

const bearer: Interceptor = (next) => (request) => {
  request.header.set("authorization", "Bearer sk-a-key");
  return next(request);
};

type Reach = (image: RunnableImageService, body: (transport: Transport) => Promise<void>) => Promise<void>;

const inProcess: Reach = (image, body) =>
  body(createLocalTransport(image.routes, { interceptors: [bearer] }));
const overSocket: Reach = async (image, body) => {
  const log = createLog({ name: "test", level: "silent" });
  const server = await startRpcServer({ ...image, host: "127.0.0.1", port: 0, log });
  const limits = { readMaxBytes: 4 << 20, writeMaxBytes: maxBodyBytes };
  try {
    const baseUrl = `http://127.0.0.1:${server.port}`;
    await body(createRemoteTransport({ baseUrl, interceptors: [bearer], limits, defaultTimeoutMs: 60_000 }));
  } finally {
    await server.drain({ delayMs: 0, timeoutMs: 0 });
  }
};

/** Runs `body` against the service with its own providers and catalogue; the vendor is a stand-in. */
async function withService(reach: Reach, body: (scene: Scene) => Promise<void>): Promise<void> {
  const upstream = await startOpenAiUpstream();
  const http = createOutboundHttp();
  const fetchReference = createGuardedFetch({ guard: createAddressGuard({ allowedCidrs: [] }) });
  const logged: string[] = [];
  const paid = new FakePaidRequests();
  const destination = { write: (line: string) => void logged.push(line) };
  const log = createLog({ name: "image", level: "trace", destination });
  const environment = { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: upstream.baseUrl };
  const providers = createProviders({ environment, http, log });
  const image = createImageService({
    catalog: await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs: providers.slugs }),
    providers,
    limits: { timeoutMs: 60_000 },
    paid,
    limiter: unlimited,
    maxBodyBytes,
    maxInflightReferenceBytes: 256 << 20,
    fetchReference,
    authenticateKey: async () =>
      create(PrincipalSchema, { keyKind: KeyKind.INFERENCE, scopes: [KeyScope.IMAGES] }),
    verifyToken: () => Promise.reject(new Error("nobody has a token")),
    log,
  });
  try {
    await reach(image, (transport) =>
      body({ client: createRpcClient(ImageService, transport), upstream, logged, paid }),
    );
  } finally {
    await upstream.close();
    await providers.close();
    await fetchReference.close();
    await http.close();
  }
}

const kindsOf = (frames: readonly GenerateResponse[]) => frames.map(({ frame }) => frame.case);

function imagesOf(frames: readonly GenerateResponse[]): Buffer[] {
  const images: Uint8Array[][] = [];
  for (const { frame } of frames) {
    if (frame.case === "imageStart") images.push([]);
    else if (frame.case === "imageData") images.at(-1)?.push(frame.value);
  }
  return images.map((pieces) => Buffer.concat(pieces));
}

/** All that came before the stream failed, and how it failed. */
async function collectFailure(stream: AsyncIterable<GenerateResponse>) {
  const frames: GenerateResponse[] = [];
  try {
    for await (const frame of stream) frames.push(frame);
  } catch (thrown) {
    if (thrown instanceof DomainError) return { frames, error: thrown };
    throw thrown;
  }
  throw new Error("the stream ended without a failure");
}

const reference = async () => {
  const canvas = { width: 8, height: 8, channels: 3, background: "#336699" } as const;
  const value = await sharp({ create: canvas }).jpeg().toBuffer();
  return { source: { case: "data" as const, value } };
};

type Fields = Omit<MessageInitShape<typeof GenerateRequestSchema>, "$typeName" | "$unknown">;

describe.for([
  ["in the process", inProcess],
  ["over a socket", overSocket],
] as const)("the image service %s", ([, reach]) => {
  test.for<[string, Fields, object, object]>([
    [
      "a derived size",
      {
        ...flare,
        aspectRatio: "16:9",
        resolution: ImageResolution.IMAGE_RESOLUTION_4K,
        outputFormat: ImageFormat.WEBP,
        outputCompression: 40,
      },
      { size: "3840x2160", output_format: "webp", output_compression: 40 },
      { format: "webp", width: 3840, height: 2160 },
    ],
    [
      "a clamped ratio",
      { ...listed, aspectRatio: "21:9", outputFormat: ImageFormat.JPEG },
      { size: "1536x1024", output_format: "jpeg" },
      { format: "jpeg", width: 1536, height: 1024 },
    ],
    [
      "transparency and no size",
      { ...listed, background: ImageBackground.TRANSPARENT },
      { background: "transparent", output_format: "png" },
      { format: "png", width: 1024, height: 1024, hasAlpha: true },
    ],
  ])("asks the provider for %s and hands on what it draws", ([, request, asked, drawn]) =>
    withService(reach, async ({ client, upstream }) => {
      const frames = await Array.fromAsync(client.generate(request));
      expect(kindsOf(frames)).toEqual(["started", "imageStart", "imageData", "finished"]);
      expect(upstream.requests[0]?.json).toMatchObject(asked);
      expect(await sharp(imagesOf(frames)[0]).metadata()).toMatchObject(drawn);
      expect(frames.at(-1)?.frame.value).toMatchObject({ promptTokens: 2n, completionTokens: 1056n });
    }),
  );

  test("makes an edit of a request with references", () =>
    withService(reach, async ({ client, upstream }) => {
      const inputReferences = [await reference(), await reference()];
      const frames = await Array.fromAsync(client.generate({ ...flare, n: 2, inputReferences }));
      expect(imagesOf(frames)).toHaveLength(2);
      expect(upstream.requests.map(({ path }) => path)).toEqual(["/v1/images/edits"]);
    }));

  test("streams previews of one image, and answers for several without", () =>
    withService(reach, async ({ client }) => {
      const one = await Array.fromAsync(client.generate({ ...flare, stream: true }));
      expect(kindsOf(one)).toEqual(["started", "partial", "partial", "imageStart", "imageData", "finished"]);
      expect(one[0]?.frame.value).toMatchObject({ streaming: true, ignoredParameters: [] });
      const two = await Array.fromAsync(client.generate({ ...flare, n: 2, stream: true }));
      expect(two[0]?.frame.value).toMatchObject({ streaming: false, ignoredParameters: ["stream"] });
      expect(imagesOf(two)).toHaveLength(2);
    }));

  test.for<[string, Fields, ErrorReason]>([
    ["an unknown model", { model: "openai/nobody" }, ErrorReason.MODEL_UNKNOWN],
    ["a model that speaks", { model: "openai/tts-1" }, ErrorReason.MODEL_UNKNOWN],
    ["pixels it can't make", { size: "1000x1000" }, ErrorReason.UNSUPPORTED_PARAMETER],
    ["markup", { outputFormat: ImageFormat.SVG }, ErrorReason.UNSUPPORTED_PARAMETER],
    ["a contradiction", { size: "1024x1024", aspectRatio: "16:9" }, ErrorReason.SIZE_CONFLICT],
    ["no provider left", { provider: { ignore: ["openai"] } }, ErrorReason.NO_ENDPOINT_LEFT],
  ])("refuses %s without asking the provider", ([, fields, reason]) =>
    withService(reach, async ({ client, upstream }) => {
      const { frames, error } = await collectFailure(client.generate({ ...flare, ...fields }));
      expect([error.reason, frames, upstream.requests]).toEqual([reason, [], []]);
    }),
  );

  test("refuses references at private addresses without asking the provider", () =>
    withService(reach, async ({ client, upstream }) => {
      const url = `${upstream.baseUrl}/a.png`;
      const inputReferences = [{ source: { case: "url" as const, value: url } }];
      const { error } = await collectFailure(client.generate({ ...flare, inputReferences }));
      expect([error.reason, upstream.requests]).toEqual([ErrorReason.REFERENCE_REFUSED, []]);
      expect(error.generationId).toMatch(/^gen-img-/);
    }));

  test("reports all about a provider that refuses, but not its words", () =>
    withService(reach, async ({ client, upstream, logged }) => {
      const message = "the vendor's words about a secret";
      upstream.next({ kind: "error", status: 429, message, headers: { "retry-after": "2" } });
      const { error } = await collectFailure(client.generate({ ...flare, prompt: "A private text." }));
      expect(error).toMatchObject({
        reason: ErrorReason.PROVIDER_OVERLOADED,
        retryAfterMs: 2_000,
        generationId: expect.stringMatching(/^gen-img-/),
        attempts: [{ providerName: "OpenAI", providerStatus: 429 }],
      });
      expect(logged.join("")).toContain("attempt failed");
      expect(`${error.message} ${logged.join("")}`).not.toMatch(/vendor's words|private text/);
    }));

  test.for(["nothing", "noise", "text"] as const)("calls %s for an image a bad answer", (content) =>
    withService(reach, async ({ client, upstream }) => {
      upstream.next({ kind: "image", content });
      const { frames, error } = await collectFailure(client.generate(flare));
      expect([frames, error.reason]).toEqual([[], ErrorReason.PROVIDER_BAD_ANSWER]);
    }),
  );

  test("goes on with what was sent when the caller gives up, with nobody reading, and charges it", () =>
    withService(reach, async ({ client, upstream, paid }) => {
      const gate = Promise.withResolvers<void>();
      upstream.next({ kind: "image", beforeEvent: (at) => (at < 1 ? undefined : gate.promise) });
      const { signal, abort } = abortable();
      const stream = client.generate({ ...flare, stream: true }, { signal })[Symbol.asyncIterator]();
      await stream.next();
      const asked = await upstream.received(1);
      abort();
      await expect(Array.fromAsync({ [Symbol.asyncIterator]: () => stream })).rejects.toBeDefined();
      gate.resolve();
      expect(await asked.ended).toBe("finished");
      await waitUntil(() => paid.events.length === 1);
      expect(paid.event()).toMatchObject({ outcome: Outcome.SUCCEEDED, cancelled: true });
      expect(paid.event().costNanoUsd).toBeGreaterThan(0n);
    }));

  test("goes on with what was sent at the caller's deadline, which the caller is told at once", () =>
    withService(reach, async ({ client, upstream, paid }) => {
      const gate = Promise.withResolvers<void>();
      upstream.next({ kind: "image", beforeHeaders: () => gate.promise });
      const { error } = await collectFailure(client.generate(flare, { timeoutMs: 500 }));
      expect(error.reason).toBe(ErrorReason.TIMED_OUT);
      const asked = await upstream.received(1);
      expect(asked.fate).toBe("open");
      gate.resolve();
      expect(await asked.ended).toBe("finished");
      await waitUntil(() => paid.events.length === 1);
      expect(paid.event()).toMatchObject({ outcome: Outcome.SUCCEEDED, cancelled: true });
    }));
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
