import type { MessageInitShape } from "@bufbuild/protobuf";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
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
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  inProcess,
  overSocket,
  type Reach,
  type VendorOptions,
  type VendorScene,
  withVendor,
} from "../../test/support/services/vendor-scene.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createImageService } from "./image-service.ts";

const maxBodyBytes = 32 << 20;
const flare = { model: "openai/gpt-image-2.5-flare", prompt: "A boat." };
const listed = { model: "openai/gpt-image-1.5", prompt: "A boat." };

const limits = { readMaxBytes: 4 << 20, writeMaxBytes: maxBodyBytes };

/** Runs `body` against the service with its own providers and catalogue; the vendor is a stand-in. */
async function withService(
  reach: Reach,
  body: (scene: VendorScene<typeof ImageService>) => Promise<void>,
): Promise<void> {
  const fetchReference = createGuardedFetch({ guard: createAddressGuard({ allowedCidrs: [] }) });
  const start = (options: VendorOptions) =>
    createImageService({
      ...options,
      limits: { timeoutMs: 60_000 },
      maxBodyBytes,
      maxInflightReferenceBytes: 256 << 20,
      fetchReference,
    });
  try {
    await withVendor({ desc: ImageService, start }, reach, body);
  } finally {
    await fetchReference.close();
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
  ["over a socket", overSocket({ limits })],
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
