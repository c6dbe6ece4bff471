import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl, Transport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GenerateRequestSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { ImageService } from "../../../gen/media/image/v1/image_service_pb.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { createLocalTransport, createRpcClient } from "../client.ts";

const transportTo = (handlers: Partial<ServiceImpl<typeof ImageService>>): Transport =>
  createLocalTransport((router) => void router.service(ImageService, handlers));

test("each side has messages of its own, and bytes are shared", async () => {
  const value = new Uint8Array(1000);
  const kept = { models: [{ id: "acme/one", inputModalities: ["text"] }] };
  const seen: Uint8Array[] = [];
  const transport = transportTo({
    listImageModels: () => kept,
    async *generate(request) {
      const [first] = request.inputReferences;
      if (first?.source.case === "data") seen.push(first.source.value);
      request.prompt = "mine";
      request.inputReferences.length = 0;
      const message = { frame: { case: "imageData" as const, value } };
      yield message;
      yield message;
    },
  });
  const client = createRpcClient(ImageService, transport);
  const request = create(GenerateRequestSchema, {
    prompt: "yours",
    inputReferences: [{ source: { case: "data", value } }],
  });
  for await (const message of client.generate(request)) {
    expect(message.frame.value).toBe(value);
    message.frame = { case: undefined };
  }
  expect(seen).toEqual([value]);
  expect(seen[0]).toBe(value);
  expect(request).toMatchObject({ prompt: "yours", inputReferences: [{ source: { value } }] });

  const answer = await client.listImageModels({});
  answer.models.length = 0;
  const again = await client.listImageModels({});
  expect(again.models).toMatchObject(kept.models);
  again.models[0]?.inputModalities.push("image");
  expect(kept.models).toEqual([{ id: "acme/one", inputModalities: ["text"] }]);
});

test("a message with names that JavaScript knows, maps and structs in it is copied whole", async () => {
  const requests: unknown[] = [];
  const transport = transportTo({
    async *generate(request) {
      requests.push(request);
      yield {};
    },
  });
  const options = JSON.parse('{"acme":{"__proto__":{"deep":[1,{"a":null}]}},"__proto__":{"b":true}}');
  const sent = create(GenerateRequestSchema, { prompt: "x", provider: { options } });
  for await (const _ of createRpcClient(ImageService, transport).generate(sent));
  expect(requests).toEqual([sent]);
  expect(JSON.stringify(requests)).toBe(JSON.stringify([sent]));
  expect(JSON.stringify(requests)).toContain('"deep":[1,{"a":null}]');
  expect(requests[0]).not.toBe(sent);
});

test("a stream whose caller leaves between two messages is ended, as over a socket", async () => {
  const state = { ended: 0, aborted: 0 };
  const transport = transportTo({
    async *generate(_, { signal }: HandlerContext) {
      signal.addEventListener("abort", () => {
        state.aborted += 1;
      });
      try {
        for (;;) yield { frame: { case: "textChunk", value: { text: "more" } } };
      } finally {
        state.ended += 1;
      }
    },
  });
  const controller = new AbortController();
  const stream = createRpcClient(ImageService, transport).generate({}, { signal: controller.signal });
  const frames = stream[Symbol.asyncIterator]();
  expect((await frames.next()).value?.frame.value).toMatchObject({ text: "more" });
  controller.abort();
  await waitUntil(() => state.ended === 1);
  expect(state.aborted).toBe(1);
  await expect(frames.next()).rejects.toMatchObject({ name: "DomainError" });
});
