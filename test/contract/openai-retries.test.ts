import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openAiEnv, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

const speech = { model: "openai/tts-1", voice: "alloy" } as const;
const image = { model: "openai/gpt-image-1.5" } as const;

interface GenerationRecord {
  data: { total_cost: number };
}

let upstream: OpenAiUpstream;
let stack: TestStandalone;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  stack = await startTestStandalone({ ...openAiEnv(upstream), IMAGE_TIMEOUT_MS: "1500" });
  // As it comes: this client sends again twice.
  client = new OpenAI({ apiKey: stack.inferenceKey, baseURL: `${stack.baseUrl}/api/v1` });
});

afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** How often the provider is asked while a call of the client lasts, and what the client throws in the end. */
async function triesOf(call: () => PromiseLike<unknown>): Promise<{ tries: number; error: APIError }> {
  const before = upstream.requests.length;
  const error = await Promise.resolve(call()).then(
    () => new Error("no error"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof APIError)) throw error;
  return { tries: upstream.requests.length - before, error };
}

describe("OpenAI's client sends once", () => {
  test.for([
    ["speech that a provider refuses for policy", "content_policy_violation", "content_policy"],
    ["speech that it calls wrong", "invalid_value", "provider_failed"],
  ] as const)("%s", async ([, code, reason]) => {
    const input = `[[status=400 code=${code}]]`;
    const { tries, error } = await triesOf(() => client.audio.speech.create({ ...speech, input }));
    expect(error.error).toMatchObject({ metadata: { reason } });
    expect(error.headers?.get("x-should-retry")).toBe("false");
    expect(tries).toBe(1);
  });

  test("an image that a provider refuses for policy", async () => {
    const prompt = "[[status=400 code=moderation_blocked]]";
    const { tries, error } = await triesOf(() => client.images.generate({ ...image, prompt }));
    expect(error).toMatchObject({ status: 502, error: { metadata: { reason: "content_policy" } } });
    expect(tries).toBe(1);
  });
});

describe("OpenAI's client sends again", () => {
  test("after an overload, and is answered", async () => {
    const before = upstream.requests.length;
    upstream.next({ kind: "error", status: 429, headers: { "retry-after": "1" } });
    const answer = await client.images.generate({ ...image, prompt: "A lighthouse." });
    expect(answer.data).toHaveLength(1);
    expect(upstream.requests.length - before).toBe(2);
  });

  test("after a deadline, which names the attempts and costs nothing", async () => {
    const silent = () => new Promise<void>(() => undefined);
    upstream.next({ kind: "image", beforeHeaders: silent }, { kind: "image", beforeHeaders: silent });
    const patient = client.withOptions({ maxRetries: 1 });
    const { tries, error } = await triesOf(() =>
      patient.images.generate({ ...image, prompt: "A lighthouse." }),
    );
    expect(error).toMatchObject({
      status: 524,
      error: {
        metadata: {
          reason: "timed_out",
          provider_name: "OpenAI",
          attempts: [{ provider_name: "OpenAI", status: null, reason: "timed_out" }],
        },
      },
    });
    expect(error.headers?.get("x-should-retry")).toBe("true");
    expect(tries).toBe(2);
    const id = error.headers?.get("x-generation-id") ?? "";
    const record = await waitUntil(() => client.get<GenerationRecord>("/generation", { query: { id } }));
    expect(record.data.total_cost).toBe(0);
  });
});
