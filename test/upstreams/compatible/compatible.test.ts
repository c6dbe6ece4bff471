/** The stand-ins of catalog/examples are taken for the real thing by clients that nobody here wrote. */
import { OpenRouter } from "@openrouter/sdk";
import OpenAI, { AzureOpenAI } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StandIn } from "../stand-in/stand-in-server.ts";
import { imageOf, speechOf, startCompatibleServer } from "./compatible.ts";
import { compatibleServers } from "./compatible-servers.ts";

type Server = keyof typeof compatibleServers;

const running = new Map<Server, StandIn>();
beforeAll(async () => {
  for (const [name, server] of Object.entries(compatibleServers) as [Server, never][])
    running.set(name, await startCompatibleServer(server));
});
afterAll(async () => {
  for (const server of running.values()) await server.close();
});

function addressOf(name: Server): string {
  return running.get(name)?.baseUrl ?? "";
}

describe("OpenAI's client", () => {
  const clientOf = (name: Server, path = "/v1", more = {}) =>
    new OpenAI({ baseURL: `${addressOf(name)}${path}`, apiKey: "test-key", maxRetries: 0, ...more });
  const basic = { defaultHeaders: { Authorization: "Basic test-key" } };

  test.for<[Server, string, string, "mp3" | "pcm" | "wav", string, object]>([
    ["kokoro-fastapi", "/v1", "kokoro", "mp3", "af_heart", {}],
    ["speaches", "/v1", "speaches-ai/piper-en_US-amy-medium", "pcm", "amy", {}],
    ["localai", "/v1", "tts-1", "wav", "any", {}],
    ["groq", "/openai/v1", "canopylabs/orpheus-v1-english", "wav", "hannah", {}],
    ["inworld", "/v1", "inworld-tts-2", "mp3", "Ashley", basic],
  ])("hears %s", async ([name, path, model, response_format, voice, more]) => {
    const client = clientOf(name, path, more);
    const answer = await client.audio.speech.create({ model, voice, input: "Words.", response_format });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const header = response_format === "wav" ? 44 : 0;
    expect(bytes.subarray(header).equals(speechOf[response_format === "mp3" ? "mp3" : "pcm"])).toBe(true);
  });

  test("reads the events of speaches", async () => {
    const answer = await clientOf("speaches").audio.speech.create({
      model: "speaches-ai/Kokoro-82M-v1.0-ONNX",
      voice: "af_heart",
      input: "Words.",
      response_format: "pcm",
      stream_format: "sse",
    });
    const events = (await answer.text()).split("\n\n").filter(Boolean);
    expect(JSON.parse(events.at(-1)?.slice(6) ?? "")).toMatchObject({ token_usage: { total_tokens: 0 } });
  });

  test.for<[Server, string, object, object]>([
    [
      "vllm-omni",
      "Qwen/Qwen-Image",
      { response_format: "b64_json", size: "1024x1024" },
      { b64_json: expect.any(String) },
    ],
    ["localai", "stablediffusion", {}, { url: expect.stringMatching(/^http.*\.png$/) }],
  ])("sees the images of %s", async ([name, model, more, item]) => {
    const { data } = await clientOf(name).images.generate({ model, prompt: "A house.", n: 1, ...more });
    expect(data?.[0]).toMatchObject(item);
  });

  test("sends a form to vllm-omni", async () => {
    const image = new File([await imageOf("64x64")], "a.png", { type: "image/png" });
    const { data } = await clientOf("vllm-omni").images.edit({
      model: "Qwen/Qwen-Image",
      image: [image],
      prompt: "Night.",
    });
    expect(data?.[0]?.b64_json).toEqual(expect.any(String));
  });

  test.for<[Server, object]>([
    ["kokoro-fastapi", { status: 400 }],
    ["groq", { status: 404, type: "invalid_request_error" }],
  ])("is refused an unknown model by %s", async ([name, error]) => {
    const path = name === "groq" ? "/openai/v1" : "/v1";
    const asked = clientOf(name, path).audio.speech.create({ model: "none", voice: "a", input: "Words." });
    await expect(asked).rejects.toMatchObject(error);
  });

  test("is refused with a wrong key, and served without one where that is optional", async () => {
    const say = (name: Server, path: string, model: string, apiKey: string) =>
      clientOf(name, path, { apiKey }).audio.speech.create({
        model,
        voice: "hannah",
        input: "Words.",
        response_format: "wav",
      });
    await expect(say("groq", "/openai/v1", "canopylabs/orpheus-v1-english", "wrong")).rejects.toMatchObject({
      status: 401,
    });
    await expect(say("localai", "/v1", "tts-1", "wrong")).rejects.toMatchObject({ status: 401 });
  });
});

test("OpenAI's client for Azure finds the deployment, with its key's header and version", async () => {
  const client = new AzureOpenAI({
    endpoint: addressOf("azure-openai"),
    apiKey: "test-key",
    apiVersion: "2025-04-01-preview",
    maxRetries: 0,
  });
  const answer = await client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "Words." });
  expect(Buffer.from(await answer.arrayBuffer()).equals(speechOf.mp3)).toBe(true);
  const other = new AzureOpenAI({
    endpoint: addressOf("azure-openai"),
    apiKey: "test-key",
    apiVersion: "1",
    maxRetries: 0,
  });
  const refused = other.audio.speech.create({ model: "tts-1", voice: "alloy", input: "Words." });
  await expect(refused).rejects.toMatchObject({ status: 404 });
});

describe("OpenRouter's client", () => {
  const clientOf = (apiKey = "test-key") =>
    new OpenRouter({ serverURL: `${addressOf("openrouter")}/api/v1`, apiKey });
  const request = { model: "openai/gpt-image-1.5", prompt: "A house." };

  test("reads images, what they cost, and takes references", async () => {
    const url = `data:image/png;base64,${(await imageOf("64x64")).toString("base64")}`;
    const answer = await clientOf().images.generate({
      imageGenerationRequest: { ...request, inputReferences: [{ type: "image_url", imageUrl: { url } }] },
    });
    expect(answer).toMatchObject({ data: [{ b64Json: expect.any(String) }], usage: { cost: 0.0387 } });
  });

  test("reads events", async () => {
    const answer = await clientOf().images.generate({ imageGenerationRequest: { ...request, stream: true } });
    const types: string[] = [];
    for await (const event of answer as AsyncIterable<{ data?: { type: string }; type?: string }>)
      types.push(event.data?.type ?? event.type ?? "");
    expect(types).toEqual(["image_generation.partial_image", "image_generation.completed"]);
  });

  test("is refused with a wrong key", async () => {
    const asked = clientOf("wrong").images.generate({ imageGenerationRequest: request });
    await expect(asked).rejects.toMatchObject({ statusCode: 401 });
  });
});
