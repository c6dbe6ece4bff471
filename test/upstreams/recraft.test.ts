import OpenAI, { APIError } from "openai";
import sharp from "sharp";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RecraftUpstream, startRecraftUpstream } from "./recraft.ts";

let upstream: RecraftUpstream;

beforeAll(async () => {
  upstream = await startRecraftUpstream();
});
afterAll(async () => await upstream.close());

// The vendor's own documentation uses OpenAI's client.
const generate = (changes: object = {}, apiKey = "test-key") =>
  new OpenAI({ apiKey, baseURL: `${upstream.baseUrl}/v1`, maxRetries: 0 }).images.generate({
    prompt: "Two race cars on a track.",
    model: "recraftv4_1",
    response_format: "b64_json",
    ...changes,
  });

test("OpenAI's client gets images, and what they cost", async () => {
  const { data, ...rest } = await generate({ n: 2, size: "1344x768" });
  const seen = (data ?? []).map(({ b64_json = "" }) => sharp(Buffer.from(b64_json, "base64")).metadata());
  expect(await Promise.all(seen)).toMatchObject([
    { format: "webp", width: 1344, height: 768 },
    { format: "webp", width: 1344, height: 768 },
  ]);
  expect(rest).toMatchObject({ credits: 70 });
});

test("OpenAI's client gets vectors by the model's name, and addresses unless it asks for base64", async () => {
  const { data } = await generate({ model: "recraftv4_1_vector" });
  const image = Buffer.from(data?.[0]?.b64_json ?? "", "base64");
  expect(await sharp(image).metadata()).toMatchObject({ format: "svg", width: 1024, height: 1024 });
  expect((await generate({ response_format: undefined })).data?.[0]?.url).toMatch(/^https:/);
});

test.for<[string, object, string | undefined, number]>([
  ["a wrong key", {}, "wrong", 401],
  ["an unknown model", { model: "recraftv9" }, undefined, 400],
  ["a size of another model", { size: "2048x2048" }, undefined, 400],
  ["too many", { n: 7 }, undefined, 400],
  ["a parameter of newer models of OpenAI", { output_format: "png" }, undefined, 400],
])("OpenAI's client is refused: %s", async ([, changes, apiKey, status]) => {
  const error: unknown = await generate(changes, apiKey).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status });
});
