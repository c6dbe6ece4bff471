import { randomBytes } from "node:crypto";
import { createParser } from "eventsource-parser";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type GenerateResponse, TextPhase } from "../../gen/media/image/v1/image_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  imageData,
  imageFinished,
  imagePartial,
  imagePlaces,
  imageStart,
  imageStarted,
  imageText,
  leastImagesBody,
  postImages,
  rawImagesRequest,
  startImageGateway,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import { errorOf, type ImageHandlers, RawConnection } from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { requestLine } from "../http/media-answer.suite.ts";

const streaming = { ...leastImagesBody, stream: true };
const started = imageStarted({ streaming: true });
const small = Buffer.from("an image");
const smallText = small.toString("base64");
const failure = new DomainError(ErrorReason.PROVIDER_FAILED, "broke", {
  attempts: [
    { providerName: "Acme", endpointId: "e", providerStatus: 500, reason: ErrorReason.PROVIDER_FAILED },
  ],
});

type Step = GenerateResponse | Error | Promise<unknown>;

/** A handler that goes through the steps: yields frames, waits for promises, throws errors. */
function performing(...steps: readonly Step[]): ImageHandlers {
  return {
    async *generate() {
      for (const step of steps) {
        if (step instanceof Promise) await step;
        else if (step instanceof Error) throw step;
        else yield step;
      }
    },
  };
}

/** What an independent parser makes of a stream's text. */
function parse(text: string) {
  const seen: { data: string[]; comments: number } = { data: [], comments: 0 };
  const parser = createParser({
    onEvent: ({ data }) => seen.data.push(data),
    onComment: () => {
      seen.comments += 1;
    },
  });
  parser.feed(text);
  const events = seen.data.filter((data) => data !== "[DONE]").map((data) => JSON.parse(data) as object);
  return { events, comments: seen.comments, isDone: seen.data.at(-1) === "[DONE]" };
}

describe.for(imagePlaces)("events of images from a service %s", (place) => {
  test("have exactly the bytes of the interface", async () => {
    const steps = [
      started,
      imagePartial(0, small),
      imageText('<svg a="é\n">', TextPhase.DRAFT),
      imageText("hm", TextPhase.REASONING),
      imageText("<svg/>", TextPhase.CONTENT),
      ...wholeImage(0, small, { pieceBytes: 1 }),
      ...wholeImage(1, small, { mediaType: "image/webp" }),
      imageFinished({ costNanoUsd: 40_000_000n }),
    ];
    await using both = await startImageGateway(place, performing(...steps));
    const response = await postImages(both.gateway, { ...streaming, n: 2 });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-generation-id": "gen-img-1",
      "x-request-id": expect.stringMatching(/^req-/),
    });
    const text = (await response.text()).replace(/"created":(\d+)/g, '"created":0');
    const usage = `{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"cost":0.04,"is_byok":false}`;
    expect(text.split("\n\n")).toEqual([
      `data: {"type":"image_generation.partial_image","b64_json":"${smallText}","partial_image_index":0}`,
      `data: {"type":"image_generation.text_chunk","phase":"draft","text":"<svg a=\\"é\\n\\">"}`,
      `data: {"type":"image_generation.text_chunk","phase":"reasoning","text":"hm"}`,
      `data: {"type":"image_generation.text_chunk","phase":"content","text":"<svg/>"}`,
      `data: {"type":"image_generation.completed","created":0,"media_type":"image/png","b64_json":"${smallText}"}`,
      `data: {"type":"image_generation.completed","created":0,"media_type":"image/webp","b64_json":"${smallText}","usage":${usage}}`,
      "data: [DONE]",
      "",
    ]);
  });

  test("hold large previews and images unharmed", async () => {
    const preview = randomBytes(3 << 20);
    const image = randomBytes(4_000_001);
    const steps = [started, imagePartial(0, preview), ...wholeImage(0, image), imageFinished()];
    await using both = await startImageGateway(place, performing(...steps));
    const { events } = parse(await (await postImages(both.gateway, streaming)).text());
    const bytes = (events as { b64_json: string }[]).map(({ b64_json }) => Buffer.from(b64_json, "base64"));
    expect([bytes[0]?.equals(preview), bytes[1]?.equals(image)]).toEqual([true, true]);
  });

  test("go out one by one, and an image before the last does not wait for those behind it", async () => {
    const gates = [0, 1].map(() => Promise.withResolvers<void>());
    const [first, second] = gates.map(({ promise }) => promise) as [Promise<void>, Promise<void>];
    const steps = [
      started,
      imagePartial(0, small),
      first,
      ...wholeImage(0, small),
      second,
      ...wholeImage(1, small),
    ];
    await using both = await startImageGateway(place, performing(...steps, imageFinished()));
    using client = new RawConnection(both.gateway);
    client.send(rawImagesRequest({ ...streaming, n: 2 }));
    await waitUntil(() => client.received.includes('"partial_image_index":0}\n\n'));
    expect(client.received).not.toContain("completed");
    gates[0]?.resolve();
    // The end of an image's event is one write of its own.
    await waitUntil(() => client.received.includes('"}\n\n'));
    expect(client.received).not.toContain("[DONE]");
    gates[1]?.resolve();
    await waitUntil(() => client.received.includes("data: [DONE]\n\n"));
  });

  test("of fewer images than were asked for end well", async () => {
    const steps = [started, ...wholeImage(0, small), imageFinished()];
    await using both = await startImageGateway(place, performing(...steps));
    const { events, isDone } = parse(await (await postImages(both.gateway, { ...streaming, n: 4 })).text());
    expect(events).toEqual([expect.objectContaining({ b64_json: smallText })]);
    expect(isDone).toBe(true);
  });
});

describe.for(imagePlaces)("the headers of events from a service %s", (place) => {
  test("wait for the first event, so that a failure until then has its own status", async () => {
    await using both = await startImageGateway(place, performing(started, failure));
    const response = await postImages(both.gateway, streaming);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await errorOf(response)).toEqual({ status: 502, reason: "provider_failed" });
  });

  test("go out with a comment when no event comes, which is repeated until one does", async () => {
    const gate = Promise.withResolvers<void>();
    const steps = [started, gate.promise, ...wholeImage(0, small), imageFinished()];
    await using both = await startImageGateway(place, performing(...steps), { keepAliveMs: 20 });
    using client = new RawConnection(both.gateway);
    client.send(rawImagesRequest(streaming));
    await waitUntil(() => client.received.split(": keep-alive\n\n").length > 3);
    expect(client.received).toMatch(/^HTTP\/1\.1 200 /);
    expect(client.received).not.toContain("data:");
    gate.resolve();
    await waitUntil(() => client.received.includes("[DONE]"));
  });

  test("have gone when a failure comes late: it is reported in the stream, which ends", async () => {
    const gate = Promise.withResolvers<void>();
    const steps = [started, gate.promise, failure];
    await using both = await startImageGateway(place, performing(...steps), { keepAliveMs: 20 });
    const response = await postImages(both.gateway, streaming);
    expect(response.status).toBe(200);
    gate.resolve();
    const { events, comments, isDone } = parse(await response.text());
    expect(comments).toBeGreaterThan(0);
    expect(events).toEqual([
      {
        type: "error",
        error: {
          code: 502,
          message: "Provider returned error",
          metadata: {
            reason: "provider_failed",
            provider_name: "Acme",
            provider_status: 500,
            attempts: [{ provider_name: "Acme", endpoint_id: "e", status: 500, reason: "provider_failed" }],
          },
        },
      },
    ]);
    expect(isDone).toBe(true);
    const line = await requestLine(both.gateway);
    expect(line).toMatchObject({ status: 200, complete: true, reason: "provider_failed" });
  });
});

describe.for(imagePlaces)("a failure in a stream of events from a service %s", (place) => {
  test.for([
    ["after a preview", [started, imagePartial(0, small)], 1],
    ["between images", [started, ...wholeImage(0, small)], 1],
    [
      "after the last image, which stays whole",
      [started, ...wholeImage(0, small), ...wholeImage(1, small)],
      2,
    ],
  ] as const)("%s is reported in it", async ([, frames, whole]) => {
    await using both = await startImageGateway(place, performing(...frames, failure));
    const { events, isDone } = parse(await (await postImages(both.gateway, { ...streaming, n: 2 })).text());
    expect(events).toHaveLength(whole + 1);
    expect(events.at(-1)).toMatchObject({ type: "error", error: { code: 502 } });
    expect(isDone).toBe(true);
  });

  test("that is a fault of ours is reported as one, and logged", async () => {
    await using both = await startImageGateway(place, performing(started, imagePartial(0, small)));
    const { events } = parse(await (await postImages(both.gateway, streaming)).text());
    expect(events.at(-1)).toEqual({
      type: "error",
      error: { code: 500, message: "Internal Server Error", metadata: { reason: "internal" } },
    });
    expect(both.gateway.logged).toContainEqual(expect.objectContaining({ level: "error" }));
  });

  test("inside of an image cuts the connection, and the image is no event", async () => {
    const steps = [started, imagePartial(0, small), imageStart(0, 100), imageData(small), failure];
    await using both = await startImageGateway(place, performing(...steps));
    using client = new RawConnection(both.gateway);
    client.send(rawImagesRequest(streaming));
    await waitUntil(() => client.ended);
    expect(client.received).toContain(smallText);
    expect(client.received).not.toContain("[DONE]");
    expect(client.received).not.toMatch(/\r\n0\r\n/);
    const line = await requestLine(both.gateway);
    expect(line).toMatchObject({ status: 200, complete: false, reason: "provider_failed" });
  });

  test("by the deadline is reported in it", async () => {
    const never = new Promise<void>(() => undefined);
    const steps = [started, imagePartial(0, small), never];
    await using both = await startImageGateway(place, performing(...steps), { imageTimeoutMs: 1000 });
    const { events, isDone } = parse(await (await postImages(both.gateway, streaming)).text());
    expect(events.at(-1)).toMatchObject({ type: "error", error: { code: 524 } });
    expect(isDone).toBe(true);
  });
});

test.for(imagePlaces)("a client that leaves a stream cancels the work of a service %s", async (place) => {
  const state = { aborted: false };
  const handlers: ImageHandlers = {
    async *generate(_request, { signal }) {
      yield started;
      yield imagePartial(0, small);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      state.aborted = true;
    },
  };
  await using both = await startImageGateway(place, handlers, { keepAliveMs: 20 });
  const client = new RawConnection(both.gateway);
  client.send(rawImagesRequest(streaming));
  await waitUntil(() => client.received.includes("partial_image"));
  client[Symbol.dispose]();
  await waitUntil(() => state.aborted);
  const line = await requestLine(both.gateway);
  expect(line).toMatchObject({ complete: false, reason: "cancelled" });
});

test("no comment stands inside of an image that is slow to come", async () => {
  const gate = Promise.withResolvers<void>();
  const handlers: ImageHandlers = {
    async *generate({ prompt }) {
      yield started;
      yield imagePartial(0, small);
      if (prompt === "image") yield* [imageStart(0, 16), imageData(small)];
      await gate.promise;
      if (prompt === "image") yield imageData(small);
      else yield* wholeImage(0, small);
      yield imageFinished();
    },
  };
  await using both = await startImageGateway("in process", handlers, { keepAliveMs: 20 });
  using idle = new RawConnection(both.gateway);
  using client = new RawConnection(both.gateway);
  client.send(rawImagesRequest({ ...streaming, prompt: "image" }));
  await waitUntil(() => client.received.includes("completed"));
  const begun = client.received.split("completed")[0]?.split(": keep-alive").length;
  idle.send(rawImagesRequest({ ...streaming, prompt: "idle" }));
  await waitUntil(() => idle.received.split(": keep-alive").length > 5);
  gate.resolve();
  await waitUntil(() => client.received.includes("[DONE]"));
  expect(client.received.split(": keep-alive")).toHaveLength(begun ?? 0);
});

describe.for(["previews", "an image"] as const)("a client that takes nothing of %s", (what) => {
  const frameCount = 100;

  test.for(imagePlaces)("makes a service %s wait, and is cut in the end", async (place) => {
    const state = { produced: 0, aborted: false };
    const handlers: ImageHandlers = {
      async *generate(_request, { signal }) {
        signal.addEventListener("abort", () => {
          state.aborted = true;
        });
        yield started;
        const piece = new Uint8Array(1 << 20);
        if (what === "an image") yield imageStart(0, frameCount * piece.length);
        for (; state.produced < frameCount; state.produced++) {
          yield what === "an image" ? imageData(piece) : imagePartial(state.produced, piece);
        }
      },
    };
    const settings = { clientStallTimeoutMs: 300, keepAliveMs: 20 };
    await using both = await startImageGateway(place, handlers, settings);
    using client = new RawConnection(both.gateway);
    client.pause();
    client.send(rawImagesRequest(streaming));
    await waitUntil(() => state.aborted);
    expect(state.produced).toBeLessThan(50);
    const line = await requestLine(both.gateway);
    expect(line).toMatchObject({ complete: false, reason: "timed_out" });
  });
});
