import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandLine } from "../support/processes/command-line.ts";
import {
  bytesOf,
  openAiEnv,
  speak,
  startTestStandalone,
  type TestStandalone,
} from "../support/processes/standalone.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import type { SpeechBehaviour } from "../upstreams/openai/openai-behaviour.ts";

/** What no answer may show: the vendor's words, its key. */
const vendorWords = "marmalade at https://internal.example.test";
const hello = { model: "openai/tts-1", voice: "alloy", input: "Hello." };

let upstream: OpenAiUpstream;
let dataDir: string;
let stack: TestStandalone;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  dataDir = await mkdtemp(join(tmpdir(), "provider-states-"));
  stack = await startTestStandalone({ ...openAiEnv(upstream), DATA_DIR: dataDir });
});

afterAll(async () => {
  await stack.close();
  await upstream.close();
  await rm(dataDir, { recursive: true, force: true });
});

function refusal(status: number, code?: string): SpeechBehaviour {
  return { kind: "error", status, message: vendorWords, ...(code === undefined ? {} : { code }) };
}

async function get(path: string, key = stack.inferenceKey) {
  const response = await fetch(`${stack.baseUrl}/api/v1${path}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  for (const word of ["marmalade", "test-key", "127.0.0.1", String(upstream.port)])
    expect(text).not.toContain(word);
  return JSON.parse(text);
}

interface Shown {
  readonly slug: string;
  readonly is_on: boolean;
  readonly opened_by: string;
  readonly switched_on_by: string | null;
  readonly models: number;
  readonly health: Record<string, unknown>;
}

async function providers(): Promise<ReadonlyMap<string, Shown>> {
  const { data } = (await get("/providers")) as { data: Shown[] };
  expect(data.map(({ slug }) => slug)).toEqual(data.map(({ slug }) => slug).toSorted());
  return new Map(data.map((shown) => [shown.slug, shown]));
}

async function opener(slug: string) {
  const shown = (await providers()).get(slug);
  return [shown?.is_on, shown?.opened_by, shown?.switched_on_by];
}

async function healthOf(model: string) {
  const { data } = (await get(`/models/${model}/endpoints`)) as {
    data: { endpoints: { health: Record<string, unknown> }[] };
  };
  return data.endpoints[0]?.health;
}

describe("what opens a provider", () => {
  test("is the operator's key, nothing, or a variable that is not set", async () => {
    expect(await opener("openai")).toEqual([true, "operator_key", "OPENAI_API_KEY"]);
    expect(await opener("local")).toEqual([true, "no_key_needed", null]);
    expect(await opener("gemini")).toEqual([false, "none", "GEMINI_API_KEY"]);
    const { data } = (await get("/models")) as { data: { id: string }[] };
    const offered = data.filter(({ id }) => id.startsWith("local/")).length;
    expect(offered).toBeGreaterThan(1);
    expect((await providers()).get("local")?.models).toBe(offered);
  });

  test("is the account's own key as well", async () => {
    for (const provider of ["openai", "gemini"]) {
      const stored = await fetch(`${stack.baseUrl}/api/v1/byok`, {
        method: "POST",
        headers: { authorization: `Bearer ${stack.managementKey}`, "content-type": "application/json" },
        body: JSON.stringify({ provider, key: "test-key" }),
      });
      expect(stored.status).toBe(201);
    }
    await waitUntil(async () => (await opener("gemini"))[0] === true);
    expect(await opener("gemini")).toEqual([true, "own_key", "GEMINI_API_KEY"]);
    await waitUntil(async () => (await opener("openai"))[1] === "both");
    const { data } = (await get("/byok", stack.managementKey)) as { data: { id: string }[] };
    for (const { id } of data)
      await fetch(`${stack.baseUrl}/api/v1/byok/${id}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${stack.managementKey}` },
      });
    await waitUntil(async () => (await opener("openai"))[1] === "operator_key");
  });
});

const untouched = { attempts: 0, error_share: null, last_error: null };

describe("a test by the operator", () => {
  /** Its exit code and what it prints. */
  function admin(...words: string[]) {
    const env = { DATA_DIR: dataDir, RPC_PORT: String(stack.rpcPort) };
    return commandLine([...words, "--operator", "ada"], { env, script: "commands/admin.ts" });
  }

  const tryProvider = (...words: string[]) => admin("provider", "test", ...words);

  test("speaks two letters, charges nobody, leaves no record and stands in the audit", async () => {
    const request = upstream.received(upstream.requests.length + 1);
    const credits = await get("/credits", stack.managementKey);
    const { code, out, error } = await tryProvider("openai");
    expect({ code, error }, out).toEqual({ code: 0, error: "" });
    expect(out.replace(/ {2,}/g, " ")).toMatch(
      /^result openai answers\nmodel openai\/\S+\nendpoint [\w-]{36}\nfirst output ms \d+\nended after ms \d+\nat most \$0\.0\d+\n$/,
    );
    const { json, headers } = await request;
    expect(json).toMatchObject({ input: "Hi" });
    expect(headers.authorization).toBe("Bearer test-key");
    expect(await get("/credits", stack.managementKey)).toEqual(credits);
    expect(await get("/activity", stack.managementKey)).toEqual({ data: [] });
    const [entry] = JSON.parse((await admin("audit", "list", "--limit", "1", "--json")).out);
    const note = expect.stringMatching(/^speech: openai\/.* USD there$/);
    expect(entry).toMatchObject({ operator: "ada", action: "provider.test", subject: "openai", note });
  });

  test.for([
    ["openai refuses the key (its status 401)", refusal(401)],
    [
      "the key's account at openai has no credit, or no plan for this call (its status 429)",
      refusal(429, "insufficient_quota"),
    ],
    ["openai does not know the model", refusal(404)],
    ["openai refuses the content (its status 400)", refusal(400, "content_policy_violation")],
    ["openai limits the rate or sheds load (its status 429)", refusal(429)],
    ["openai failed by itself (its status 500)", refusal(500)],
    ["the connection to openai broke", { kind: "audio", cutAfterBytes: 0 }],
    [
      "what openai answers makes no sense (its status 200)",
      { kind: "plain", status: 200, headers: { "content-type": "text/html" }, body: vendorWords },
    ],
  ] satisfies [string, SpeechBehaviour][])("says in words what is wrong: %s", async ([words, behaviour]) => {
    upstream.next(behaviour);
    const { code, out, error } = await tryProvider("openai");
    expect({ code, error }).toEqual({ code: 1, error: "" });
    expect(out).toMatch(new RegExp(`^result +${RegExp.escape(words)}`));
    expect(out).not.toContain("marmalade");
    expect(out).not.toContain("test-key");
  });

  test("draws where a provider does not speak, and says so where nobody is asked", async () => {
    expect(await tryProvider("gemini")).toEqual({
      code: 3,
      out: "",
      error: "error: gemini is off: it has no key of the operator's\n",
    });
    expect(await tryProvider("nobody")).toMatchObject({
      code: 4,
      error: "error: no provider nobody offers such a model that has a price\n",
    });
    expect((await tryProvider("openai", "--key", "2")).error).toBe("error: openai has 1 key\n");
    const drawn = await tryProvider("local", "--medium", "image");
    expect(drawn).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^result +local answers\nmodel +local\/painter\n/),
    });
  });

  test("says nothing to routing", async () => {
    expect((await providers()).get("openai")?.health).toEqual({ breaker: "closed", ...untouched });
    expect(await healthOf("openai/tts-1")).toMatchObject(untouched);
  });
});

describe("what was seen of an endpoint", () => {
  test("is nothing before it was tried, then how attempts ended and how fast they were", async () => {
    expect(await healthOf("openai/tts-1-hd")).toEqual({
      breaker: "closed",
      ...untouched,
      first_output_ms: null,
      units_per_second: null,
    });
    upstream.next(refusal(503));
    expect((await speak(stack, stack.inferenceKey, hello)).status).toBe(529);
    await bytesOf(await speak(stack, stack.inferenceKey, hello));
    await waitUntil(async () => (await healthOf("openai/tts-1"))?.attempts === 2);
    const health = await healthOf("openai/tts-1");
    expect(health).toEqual({
      breaker: "closed",
      attempts: 2,
      error_share: 0.5,
      first_output_ms: expect.any(Number),
      units_per_second: expect.any(Number),
      last_error: { kind: "overloaded", at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) },
    });
    expect((await providers()).get("openai")?.health).toEqual({
      breaker: "closed",
      attempts: 2,
      error_share: 0.5,
      last_error: health?.last_error,
    });
  });

  test("is told of images, too", async () => {
    upstream.next({ kind: "error", status: 500, message: vendorWords });
    const body = { model: "openai/gpt-image-1.5", prompt: "A dot." };
    const response = await fetch(`${stack.baseUrl}/api/v1/images`, {
      method: "POST",
      headers: { authorization: `Bearer ${stack.inferenceKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(502);
    const { endpoints } = (await get("/images/models/openai/gpt-image-1.5/endpoints")) as {
      endpoints: { health: object }[];
    };
    const seen = { attempts: 1, error_share: 1, last_error: { kind: "upstream" } };
    expect(endpoints[0]?.health).toMatchObject({ breaker: "closed", ...seen });
    expect(await healthOf("openai/gpt-image-1.5")).toMatchObject(seen);
    expect((await providers()).get("openai")?.health).toMatchObject({
      attempts: 3,
      last_error: { kind: "upstream" },
    });
  });

  test("is an open breaker once it keeps failing", async () => {
    await waitUntil(async () => {
      upstream.next(refusal(500));
      await (await speak(stack, stack.inferenceKey, hello)).text();
      return (await healthOf("openai/tts-1"))?.breaker === "open";
    });
    expect((await providers()).get("openai")?.health.breaker).toBe("partly_open");
  });
});

describe("the log of the start", () => {
  const logged = () =>
    stack.child.lines.flatMap((line) =>
      line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : [],
    );

  test("has a line for each provider that is on, with its address where it is not the vendor's", () => {
    const on = logged().filter(({ msg }) => msg === "provider is on");
    expect(on.map(({ provider, base_url }) => [provider, base_url])).toEqual([
      ["local", undefined],
      ["openai", `http://127.0.0.1:${upstream.port}`],
    ]);
    for (const { models } of on) expect(models).toBeGreaterThan(0);
    expect(JSON.stringify(on)).not.toContain("test-key");
  });
});
