import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { hashApiKey } from "../../lib/identity/api-key.ts";
import { startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { npmOpenRouter, type OpenRouterSdk, pythonOpenRouter, type SdkCall } from "./openrouter-sdk.ts";
import { readSdkTable } from "./openrouter-table.ts";
import { needPythonClients } from "./python-client.ts";

const sdks = { npm: npmOpenRouter, PyPI: pythonOpenRouter } as const;

const destinationConfigs: Readonly<Record<string, Record<string, unknown>>> = {
  webhook: { url: "https://receiver.example.com/", headers: { "x-key": "secret" } },
  "otel-collector": { endpoint: "https://otel.example.com" },
  langfuse: { publicKey: "pk-1", secretKey: "sk-1", baseUrl: "https://langfuse.example.com" },
  grafana: { instanceId: "1", apiKey: "glc_1", baseUrl: "https://otlp.example.com" },
  s3: { bucketName: "events", accessKeyId: "AKIA1", secretAccessKey: "secret", region: "eu-central-1" },
};

interface Named extends Record<string, unknown> {
  readonly id: string;
  readonly hash: string;
  readonly name: string | null;
}

interface Shown extends Record<string, unknown> {
  readonly data: Named;
  readonly key: string;
  readonly pages: readonly { readonly data: readonly Named[]; readonly total_count: number }[];
}

describe.for(["npm", "PyPI"] as const)("OpenRouter's SDK of %s", (name) => {
  let stack: TestStandalone;
  let sdk: OpenRouterSdk | undefined;
  /** Fields that the older one of the two drops. */
  const newer = (fields: Record<string, unknown>) => (name === "PyPI" ? fields : {});
  const called = new Map<string, Set<string>>();

  beforeAll(async () => {
    stack = await startTestStandalone();
  });
  beforeEach((context) => {
    if (name === "PyPI") needPythonClients(context);
    sdk ??= sdks[name](`${stack.baseUrl}/api/v1`);
  });
  afterAll(async () => {
    await sdk?.close();
    await stack.close();
  });

  async function outcomeOf(method: string, options: Partial<SdkCall> = {}) {
    if (sdk === undefined) throw new Error("not begun");
    const outcome = await sdk.call({ key: stack.managementKey, ...options, method });
    const ends = called.get(method) ?? new Set<string>();
    called.set(method, ends.add("value" in outcome ? "worked" : `${outcome.error.status}`));
    return outcome;
  }

  /** The validated answer of a call that has to work. */
  async function call(method: string, options: Partial<SdkCall> = {}): Promise<Shown> {
    const outcome = await outcomeOf(method, options);
    if ("error" in outcome) throw new Error(`${method}: ${JSON.stringify(outcome.error)}`);
    return outcome.value as Shown;
  }

  async function statusOf(method: string, options: Partial<SdkCall> = {}): Promise<number> {
    const outcome = await outcomeOf(method, options);
    return "error" in outcome ? outcome.error.status : 200;
  }

  const inference = (body: Record<string, unknown>) => ({ key: stack.inferenceKey, body });

  test("reads lists with nothing in them", async () => {
    expect(await call("analytics.get_user_activity")).toEqual({ data: [] });
    for (const method of ["byok.list", "observability.list"]) {
      expect(await call(method), method).toEqual({ pages: [{ data: [], total_count: 0 }] });
    }
    expect((await call("api_keys.list", { args: { offset: 100 } })).data).toEqual([]);
    const none = { args: { output_modalities: "text" } };
    for (const method of ["models.list", "models.list_for_user"]) {
      expect(await call(method, none)).toMatchObject({ pages: [{ data: [], total_count: 0 }] });
    }
    expect(await call("models.count", none)).toEqual({ data: { count: 0 } });
    expect(await call("credits.get_credits")).toEqual({ data: { total_credits: 10, total_usage: 0 } });
  });

  test("reads models, endpoints and providers", async () => {
    const { pages } = await call("models.list", { args: { limit: 1 } });
    expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual([
      "local/flite",
      "local/painter",
      "local/postcard",
    ]);
    expect((await call("models.list")).pages).toMatchObject([{ total_count: 3 }]);
    const user = { key: stack.inferenceKey, args: { output_modalities: "speech" } };
    expect((await call("models.list_for_user", user)).pages).toMatchObject([
      { data: [{ id: "local/flite", architecture: { tokenizer: "Media" } }] },
    ]);
    expect(await call("models.count")).toEqual({ data: { count: 3 } });
    for (const slug of ["flite", "painter"]) {
      const args = { author: "local", slug };
      expect(await call("models.get", { args })).toMatchObject({ data: { id: `local/${slug}` } });
      expect(await call("endpoints.list", { args })).toMatchObject({
        data: { id: `local/${slug}`, endpoints: [{ tag: "local", model_id: `local/${slug}` }] },
      });
      expect(await statusOf("models.get", { args: { ...args, author: "nobody" } })).toBe(404);
    }
    const { data: providers } = await call("providers.list");
    expect(providers).toContainEqual(expect.objectContaining({ slug: "local", name: "Local" }));
    expect((await call("images.list_models")).data).toHaveLength(2);
    const args = { author: "local", slug: "painter" };
    expect(await call("images.list_model_endpoints", { args })).toMatchObject({
      id: "local/painter",
      endpoints: [{ provider_slug: "local", pricing: [{ billable: "output_image" }] }],
    });
  });

  test("speaks, draws, and reads what came of it", async () => {
    const speech = { model: "local/flite", voice: "slt", input: "Hello.", user: "u", session_id: "s" };
    const { bytes, generation_id: id } = await call("tts.create_speech", inference(speech));
    expect(bytes).toBeGreaterThan(1000);
    const image = { model: "local/painter", prompt: "a lighthouse", size: "256x256" };
    expect(await call("images.generate", inference(image))).toMatchObject({
      data: [{ media_type: "image/png" }],
      usage: { cost: 0.001, is_byok: false },
    });
    const { events } = await call("images.generate", inference({ ...image, stream: true }));
    const types = (events as { type: string }[]).map(({ type }) => type);
    expect([...new Set(types)]).toEqual(["image_generation.partial_image", "image_generation.completed"]);
    const generation = await waitUntil(() => call("generations.get_generation", { args: { id } }));
    expect(generation).toMatchObject({
      data: {
        id,
        model: "local/flite",
        api_type: "tts",
        external_user: "u",
        provider_responses: [{ provider_name: "Local" }],
      },
    });
    const activity = await waitUntil(async () => {
      const { data } = await call("analytics.get_user_activity");
      return (data as unknown as { requests: number }[]).reduce((sum, { requests }) => sum + requests, 0) ===
        3
        ? data
        : undefined;
    });
    expect(activity).toMatchObject([
      { model: "local/painter", requests: 2, ...newer({ cached_tokens: 0 }) },
      { model: "local/flite", requests: 1, ...newer({ cached_tokens: 0 }) },
    ]);
    const today = { args: { api_key_hash: hashApiKey(stack.inferenceKey), group_by: "workspace" } };
    expect((await call("analytics.get_user_activity", today)).data).toHaveLength(2);
  });

  test("keeps keys", async () => {
    const limit = { limit: 5, limit_reset: "weekly", include_byok_in_limit: true };
    const made = await call("api_keys.create", {
      body: { name: "Website", ...limit, expires_at: "2099-12-31T23:59:59Z" },
    });
    expect(made).toMatchObject({ data: { name: "Website", ...limit, ...newer({ last_used_at: null }) } });
    const { hash } = made.data;
    expect(hashApiKey(made.key)).toBe(hash);
    expect(await call("api_keys.get_current_key_metadata", { key: made.key })).toMatchObject({
      data: {
        is_management_key: false,
        ...newer({
          budgets: [{ scope: "key_limit", limit_usd: 5, remaining_usd: 5, reset_interval: "weekly" }],
          effective_budget: expect.objectContaining({ scope: "key_limit" }),
        }),
      },
    });
    expect(await call("api_keys.get_current_key_metadata")).toMatchObject({
      data: { is_management_key: true, ...newer({ budgets: [], effective_budget: null }) },
    });
    expect(await call("api_keys.get", { args: { hash } })).toMatchObject({
      data: { hash, ...newer({ last_used_at: expect.any(String) }) },
    });
    const change = { name: "Site", limit: null, limit_reset: null, disabled: true };
    expect(await call("api_keys.update", { args: { hash }, body: change })).toMatchObject({ data: change });
    const listed = (await call("api_keys.list", { args: { include_disabled: true } })).data;
    expect((listed as unknown as Named[]).map((key) => key.name)).toContain("Site");
    expect(await call("api_keys.delete", { args: { hash } })).toEqual({ deleted: true });
    expect(await statusOf("api_keys.get", { args: { hash } })).toBe(404);
    const last = { args: { hash: hashApiKey(stack.managementKey) } };
    expect(await statusOf("api_keys.delete", last)).toBe(409);
    expect(await statusOf("api_keys.update", { ...last, body: { disabled: true } })).toBe(409);
  });

  test("keeps provider keys", async () => {
    const key = "sk-proj-0123456789abcdefghijklmnop";
    const { data } = await call("byok.create", { body: { provider: "openai", key, name: "Team" } });
    const shown = { ...data, provider: "openai", name: "Team", disabled: false, sort_order: 0 };
    expect(await call("byok.list", { args: { limit: 1, provider: "openai" } })).toEqual({
      // A page as long as it may be is followed by the question for the next.
      pages: [
        { data: [shown], total_count: 1 },
        { data: [], total_count: 1 },
      ],
    });
    expect(await call("byok.get", { args: { id: data.id } })).toEqual({ data: shown });
    const update = { args: { id: data.id }, body: { name: null, disabled: true, key: `${key}-new` } };
    expect(await call("byok.update", update)).toMatchObject({ data: { name: null, disabled: true } });
    const restricted = { args: { id: data.id }, body: { allowed_models: ["local/flite"] } };
    expect(await statusOf("byok.update", restricted)).toBe(400);
    expect(await statusOf("byok.create", { body: { provider: "openai", key } })).toBe(409);
    expect(await call("byok.delete", { args: { id: data.id } })).toEqual({ deleted: true });
    expect(await statusOf("byok.get", { args: { id: data.id } })).toBe(404);
  });

  test.for(Object.entries(destinationConfigs))("keeps destinations: %s", async ([type, config]) => {
    const rules = [{ field: "total_cost", operator: "gt", value: 0.5 }];
    const { data } = await call("observability.create", {
      body: {
        type,
        name: type,
        config,
        enabled: false,
        sampling_rate: 0.5,
        api_key_hashes: [hashApiKey(stack.inferenceKey)],
        filter_rules: { enabled: true, groups: [{ logic: "and", rules }] },
        broadcast_generation_cost: true,
      },
    });
    expect(data).toMatchObject({
      type,
      enabled: false,
      broadcast_generation_cost: true,
      ...newer({ broadcast_generation_cost_allocation: false }),
      filter_rules: { groups: [{ rules }] },
    });
    const args = { id: data.id };
    expect(await call("observability.get", { args })).toEqual({ data });
    const change = { name: "Other", api_key_hashes: null, filter_rules: null };
    expect(await call("observability.update", { args, body: change })).toMatchObject({ data: change });
    expect((await call("observability.list", { args: { limit: 10 } })).pages).toMatchObject([
      { data: [{ id: data.id, type }], total_count: 1 },
    ]);
    expect(await call("observability.delete", { args })).toEqual({ deleted: true });
    expect(await statusOf("observability.get", { args })).toBe(404);
  });

  test.for<[string, Partial<SdkCall>]>([
    ["endpoints.list_zdr_endpoints", {}],
    ["analytics.get_analytics_meta", {}],
    ["analytics.query_analytics", { body: { metrics: ["requests"] } }],
    ["generations.list_generation_content", { args: { id: "gen-tts-1" } }],
    ["generations.submit_feedback", { body: { generation_id: "gen-tts-1", category: "other" } }],
    ["stt.create_transcription", { body: { model: "a/b", input_audio: { data: "aGk=", format: "mp3" } } }],
    ["embeddings.list_models", {}],
    ["video_generation.list_videos_models", {}],
  ])("is answered 404 by %s", async ([method, options]) => {
    expect(await statusOf(method, options)).toBe(404);
  });

  test("was asked for everything that docs/compatibility.md names", async () => {
    const { rows } = await readSdkTable();
    const named = rows.filter(({ method }) => /^\w+\.\w+$/.test(method));
    expect([...called.keys()].sort()).toEqual(named.map(({ method }) => method).sort());
    const wrong = named.filter(({ method, works }) => !called.get(method)?.has(works ? "worked" : "404"));
    expect(wrong).toEqual([]);
  });
});
