import { createFalClient } from "@fal-ai/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FalUpstream, falAudio, falImage, startFalUpstream, wavOf } from "./fal.ts";

let upstream: FalUpstream;

beforeAll(async () => {
  upstream = await startFalUpstream();
});
afterAll(async () => await upstream.close());

/** The vendor's client knows no other host: its requests are sent here, and checked to be for the queue. */
const clientOf = (credentials = "key-id:key-secret") =>
  createFalClient({
    credentials,
    retry: { maxRetries: 0 },
    requestMiddleware: (request) => {
      const { origin, pathname, search } = new URL(request.url);
      expect(origin).toBe("https://queue.fal.run");
      return Promise.resolve({ ...request, url: upstream.baseUrl + pathname + search });
    },
  });

async function bytesAt(url: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(url)).arrayBuffer());
}

const size = { width: 64, height: 48 };

test("the vendor's client sees the stand-in's images", async () => {
  const states: string[] = [];
  const { data, requestId } = await clientOf().subscribe("fal-ai/flux/schnell", {
    input: { prompt: "Two boats.", num_images: 2, image_size: size },
    pollInterval: 10,
    onQueueUpdate: ({ status }) => states.push(status),
  });
  expect(states).toEqual(["IN_QUEUE", "IN_PROGRESS", "COMPLETED"]);
  expect(requestId).not.toBe("");
  expect(data).toMatchObject({ has_nsfw_concepts: [false, false], seed: 42 });
  for (const [place, { url }] of data.images.entries()) {
    expect((await bytesAt(url)).equals(await falImage(place, size))).toBe(true);
  }
});

test("the vendor's client hears the stand-in's speech", async () => {
  const { data } = await clientOf().subscribe("fal-ai/orpheus-tts", {
    input: { text: "Hello." },
    pollInterval: 10,
  });
  expect((await bytesAt(data.audio.url)).equals(wavOf(falAudio()))).toBe(true);
});

test("the vendor's client cancels a job of the stand-in", async () => {
  const { queue } = clientOf();
  const { request_id: requestId } = await queue.submit("fal-ai/flux/schnell", {
    input: { prompt: "A boat." },
  });
  expect(upstream.openJobs()).toBe(1);
  await queue.cancel("fal-ai/flux/schnell", { requestId });
  expect(upstream.openJobs()).toBe(0);
});

test("the vendor's client understands the stand-in's refusals", async () => {
  const input = { prompt: "A boat.", num_images: 9 };
  const asked = clientOf().subscribe("fal-ai/flux/schnell", { input, pollInterval: 10 });
  await expect(asked).rejects.toMatchObject({
    name: "ValidationError",
    status: 422,
    fieldErrors: [{ loc: ["body", "num_images"], type: "less_than_equal" }],
  });
  await expect(clientOf("wrong").subscribe("fal-ai/flux/schnell", { input })).rejects.toMatchObject({
    name: "ApiError",
    status: 401,
  });
});
