import { randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  bytesOf,
  openAiEnv,
  speak,
  startTestStandalone,
  type TestStandalone,
} from "../support/processes/standalone.ts";
import { type Series, scrape, sumOf } from "../support/prometheus-text.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

const duration = "http_server_request_duration_seconds_count";
const attempts = "media_gateway_upstream_attempts_total";
const speechRoute = "/api/v1/audio/speech";
const hello = { model: "openai/tts-1", voice: "alloy", input: "Hello." };
const endpoint = "3291a345-5d34-4c0a-b606-d4b4a367f7a7";

let upstream: OpenAiUpstream;
let stack: TestStandalone;
let metricsPort: number;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  stack = await startTestStandalone({
    ...openAiEnv(upstream),
    METRICS_PORT: "0",
    RATE_LIMIT_PER_MINUTE: "100000",
  });
  metricsPort = await stack.child.listeningPort("metrics");
});

afterAll(async () => {
  await stack?.close();
  await upstream?.close();
});

const read = () => scrape(metricsPort);

/** By how much the sum of some series grows while something happens, once it has grown by `growth`. */
async function grows(
  growth: number,
  name: string,
  labels: Record<string, string>,
  happen: () => Promise<unknown>,
): Promise<void> {
  const before = sumOf(await read(), name, labels);
  await happen();
  await expect.poll(async () => sumOf(await read(), name, labels) - before).toBe(growth);
}

const say = async (body: object, key = stack.inferenceKey) => {
  const response = await speak(stack, key, body);
  await bytesOf(response);
  return response.status;
};

describe("requests", () => {
  test.for([
    ["200", {}, speechRoute],
    ["400", { speed: "fast" }, speechRoute],
    ["404", { model: "acme/unheard-of" }, speechRoute],
  ] as const)("are counted by route and code: %s", async ([code, change, route]) => {
    const labels = { http_request_method: "POST", http_route: route, http_response_status_code: code };
    await grows(1, duration, labels, async () =>
      expect(await say({ ...hello, ...change })).toBe(Number(code)),
    );
  });

  test("without a route are counted together", async () => {
    const labels = { http_route: "unrouted", http_response_status_code: "404" };
    await grows(2, duration, labels, async () => {
      for (const path of ["/secret-path-1", "/api/v1/secret-path-2?key=x"])
        await (await fetch(stack.baseUrl + path)).text();
    });
  });

  test("have the time to the first byte of their answers told, and errors have not", async () => {
    const name = "media_gateway_http_first_byte_seconds_count";
    await grows(1, name, { http_route: speechRoute }, async () => {
      await say(hello);
      await say({ ...hello, speed: "fast" });
    });
  });

  test("that clients leave are counted as cancelled, and none stays under way", async () => {
    const rest = Promise.withResolvers<void>();
    upstream.next({ kind: "audio", beforeChunk: (index) => (index === 0 ? undefined : rest.promise) });
    const labels = { http_route: speechRoute, reason: "cancelled" };
    await grows(1, "media_gateway_http_failures_total", labels, async () => {
      const abort = new AbortController();
      const response = await speak(stack, stack.inferenceKey, hello, { signal: abort.signal });
      await response.body?.getReader().read();
      expect(sumOf(await read(), "http_server_active_requests")).toBe(1);
      abort.abort();
    });
    rest.resolve();
    await expect.poll(async () => sumOf(await read(), "http_server_active_requests")).toBe(0);
  });

  test("that are cut behind their first byte are counted by reason", async () => {
    upstream.next({ kind: "audio", totalBytes: 65_536, cutAfterBytes: 8192 });
    const labels = { http_route: speechRoute, reason: "provider_failed" };
    await grows(1, "media_gateway_http_failures_total", labels, async () => {
      await expect(say(hello)).rejects.toThrow();
    });
  });
});

describe("calls", () => {
  test.for([
    ["media.speech.v1.SpeechService/Synthesize", "ok", {}],
    ["media.speech.v1.SpeechService/Synthesize", "not_found", { model: "acme/unheard-of" }],
    ["media.account.v1.AccountInternalService/Reserve", "ok", {}],
  ] as const)("are counted by RPC and code: %s %s", async ([rpc, code, change]) => {
    const labels = { rpc_method: rpc, rpc_response_status_code: code };
    await grows(1, "rpc_server_call_duration_seconds_count", labels, () => say({ ...hello, ...change }));
  });
});

describe("upstreams", () => {
  test("have their attempts counted by outcome and reason, and their first outputs timed", async () => {
    const labels = { provider: "openai", endpoint, byok: "false" };
    await grows(1, attempts, { ...labels, outcome: "succeeded", reason: "" }, () => say(hello));
    await grows(1, "media_gateway_upstream_first_output_seconds_count", { endpoint }, () => say(hello));
    upstream.next({ kind: "error", status: 400 });
    await grows(1, attempts, { ...labels, outcome: "failed", reason: "provider_failed" }, () => say(hello));
    await grows(1, "media_gateway_generations_total", { api: "speech", outcome: "succeeded" }, () =>
      say(hello),
    );
  });

  test("that are left alone are told of", async () => {
    const labels = { model: "openai/tts-1-hd", provider: "openai" };
    const open = async () => sumOf(await read(), "media_gateway_breaker_open", labels);
    const told = (await read()).filter(({ name }) => name === "media_gateway_breaker_open");
    expect(told.map(({ labels: { model } }) => model)).toContain("openai/tts-1-hd");
    expect(await open()).toBe(0);
    upstream.next(...Array.from({ length: 5 }, () => ({ kind: "error", status: 500 }) as const));
    for (let time = 0; time < 5; time++) await say({ ...hello, model: "openai/tts-1-hd" });
    expect(await open()).toBe(1);
  });

  test("that are engines of this process tell how busy they are", async () => {
    const labels = { provider: "local", pool: "speech" };
    await grows(1, "media_gateway_engine_tasks_completed_total", labels, () =>
      say({ model: "local/flite", voice: "slt", input: "Hello." }),
    );
    const tasks = (await read()).filter(({ name }) => name === "media_gateway_engine_tasks");
    expect(tasks).toHaveLength(4);
  });
});

describe("events and money", () => {
  test("are told: published, taken in by each group, settled, nothing left behind", async () => {
    const before = await read();
    await say(hello);
    const growth = async (name: string, labels: Record<string, string>) =>
      sumOf(await read(), name, labels) - sumOf(before, name, labels);
    for (const group of ["account", "usage", "destination"]) {
      const labels = { group: `media.${group}` };
      await expect.poll(() => growth("media_gateway_consumer_applied_total", labels)).toBeGreaterThan(0);
    }
    expect(await growth("media_gateway_publisher_published_total", { service: "speech" })).toBeGreaterThan(0);
    // What is in the database is read anew after 5 s.
    await expect
      .poll(async () => sumOf(await read(), "media_gateway_holds_open"), { timeout: 20_000 })
      .toBe(0);
    const now = await read();
    for (const name of [
      "media_gateway_publisher_pending",
      "media_gateway_publisher_quarantined_total",
      "media_gateway_consumer_dead_letters_total",
      "media_gateway_money_closed_hold_events_total",
      "media_gateway_money_unknown_holds_total",
      "media_gateway_money_unpublishable_total",
      "media_gateway_holds_overdue",
    ]) {
      expect(now.map(({ name: told }) => told)).toContain(name);
      expect(sumOf(now, name), name).toBe(0);
    }
  });
});

describe("hostile clients", () => {
  const word = () => randomBytes(9).toString("base64url");

  /** One request of each kind that carries words of the client's own wherever there is room. */
  async function attack(mark: string): Promise<void> {
    const own = () => `${mark}-${word()}`;
    const foreign = `sk-${word()}${word()}${word()}${word()}`;
    const attribution = { user: own(), session_id: own(), trace: { name: own() } };
    const bodies = [
      { ...hello, ...attribution, input: own(), provider: { order: [own()], options: { [own()]: {} } } },
      { ...hello, model: `${own()}/${own()}` },
      { ...hello, voice: own(), model: "local/flite" },
      { [own()]: own() },
    ];
    for (const body of bodies) await say(body);
    expect(await say(hello, foreign)).toBe(401);
    await get(`/${own()}`);
    await get(`/api/v1/images/models/${own()}/${own()}/endpoints`, "GET");
    await get(`/api/v1/keys/${own()}`, "GET", { "x-request-id": own(), "user-agent": own() });
    await get(`/api/v1/generation?id=${own()}`, "PROPFIND");
    await fetch(`${stack.rpcUrl}/media.${own()}/Call`, { method: "POST", body: "{}" });
    upstream.next({ kind: "error", status: 500, code: own(), type: own(), message: own() });
    await say({ ...hello, model: "openai/gpt-4o-mini-tts" });
    await say({ ...hello, model: "openai/gpt-4o-mini-tts" });
  }

  function get(path: string, method = "GET", headers: Record<string, string> = {}): Promise<void> {
    const options = {
      port: stack.restPort,
      path,
      method,
      headers: { authorization: `Bearer ${stack.managementKey}`, ...headers },
    };
    return new Promise((resolve, reject) => {
      httpRequest(options, (response) => response.resume().on("end", resolve).on("error", reject))
        .on("error", reject)
        .end();
    });
  }

  test("make no more series than well-meaning ones, and put no word of theirs into one", async () => {
    const marks = ["mallory", "marvin"];
    const ids = async () => new Set((await read()).map(({ id }) => id));
    for (let time = 0; time < 3; time++) await attack("mallory");
    const before = await ids();
    for (let time = 0; time < 25; time++) await attack("marvin");
    const added = [...(await ids())].filter((id) => !before.has(id));
    expect(added).toEqual([]);
    const all = [...before].join("\n");
    for (const canary of [...marks, stack.inferenceKey, stack.managementKey, "Hello."])
      expect(all).not.toContain(canary);
    expect(before.size).toBeLessThan(2000);
    expect(labelValues(await read(), "http_request_method")).toContain("_OTHER");
  }, 120_000);
});

function labelValues(series: readonly Series[], label: string): ReadonlySet<string | undefined> {
  return new Set(series.map(({ labels }) => labels[label]));
}
