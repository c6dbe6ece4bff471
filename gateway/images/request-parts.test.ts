import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type GenerateRequest, GenerateRequestSchema } from "../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { createLocalTransport, createRemoteTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { imageStarted, startImageServer } from "../../test/support/services/gateway-images.ts";
import { type ImageHandlers, imageRoutes } from "../../test/support/services/gateway-server.ts";
import { imageRequestParts as requestParts } from "./request-parts.ts";

const seen: GenerateRequest[] = [];
const handlers: ImageHandlers = {
  async *generate(request) {
    seen.push(request);
    yield imageStarted();
  },
};

const source = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((value) => ({ case: "data" as const, value })),
  fc.webUrl().map((value) => ({ case: "url" as const, value })),
  fc.constant({ case: "data" as const, value: new Uint8Array(600_000).fill(7) }),
  fc.constant({ case: undefined }),
);
const request = fc
  .record({ prompt: fc.string(), references: fc.array(source, { maxLength: 5 }), mask: fc.option(source) })
  .map(({ prompt, references, mask }) =>
    create(GenerateRequestSchema, {
      prompt,
      inputReferences: references.map((one) => ({ source: one })),
      ...(mask === null ? {} : { mask: { source: mask } }),
    }),
  );

test("a request sent in parts is the one that comes, in process and over a socket", async () => {
  await using server = await startImageServer(handlers);
  const limits = { readMaxBytes: 8 << 20, writeMaxBytes: 8 << 20 };
  const transports = [
    createLocalTransport(imageRoutes(handlers)),
    createRemoteTransport({ baseUrl: server.baseUrl, limits, requestParts }),
  ];
  await fc.assert(
    fc.asyncProperty(request, fc.constantFrom(...transports), async (sent, transport) => {
      seen.length = 0;
      for await (const _ of createRpcClient(ImageService, transport).generate(sent));
      const encoded = seen.map((one) => toBinary(GenerateRequestSchema, one));
      expect(encoded).toHaveLength(1);
      expect(Buffer.from(toBinary(GenerateRequestSchema, sent)).equals(encoded[0] as Uint8Array)).toBe(true);
    }),
    { numRuns: 60 },
  );
});

test("a request above the limit is refused as a whole", async () => {
  await using server = await startImageServer(handlers);
  const limits = { readMaxBytes: 1 << 20, writeMaxBytes: 1 << 20 };
  const client = createRpcClient(
    ImageService,
    createRemoteTransport({ baseUrl: server.baseUrl, limits, requestParts }),
  );
  const value = new Uint8Array(2 << 20);
  seen.length = 0;
  const frames = client.generate({ inputReferences: [{ source: { case: "data", value } }] });
  await expect(frames[Symbol.asyncIterator]().next()).rejects.toThrow("larger than");
  expect(seen).toEqual([]);
});
