import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { connectAdmin } from "../../commands/cli/connect.ts";
import { processNames } from "../../commands/stack/processes.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";
import { KafkaStage, kafkaTimeoutMs } from "../support/kafka/kafka-stage.ts";
import { allRows } from "../support/processes/canaries.ts";
import { type CanaryFlow, startCanaryFlow } from "../support/processes/canary-flow.ts";
import { describeError, speakDirectly, tokenPattern } from "../support/processes/speech-flow.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { SpeechBehaviour } from "../upstreams/openai/openai-behaviour.ts";

// A broker and six processes have to start.
vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: 2 * kafkaTimeoutMs });

const speechModel = "openai/tts-1";
const eventModel = "openai/gpt-4o-mini-tts";
const pictureModel = "openai/gpt-image-2.5-flare";
const topic = "media.generation-events.v1";
/** What may be found everywhere: proves that what is looked into is what it should be. */
const requestId = "request-that-is-looked-for";
const never = () => new Promise<void>(() => undefined);
const services = processNames.filter((name) => name !== "gateway");

let flow: CanaryFlow;
/** All that callers got: headers and bodies. */
const answered: string[] = [];
const generationIds = new Set<string>();

beforeAll(async () => {
  if (kafkaUnavailable() === undefined) flow = await startCanaryFlow();
});

beforeEach((context) => needKafka(context));

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
});

interface Ask {
  readonly key?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** The answer is meant to hold a secret of the one who asks. */
  readonly unkept?: boolean;
}

/** Asks the REST interface and keeps what comes back. Resolves with the status, and the body as far as it came. */
async function ask(
  path: string,
  body: unknown,
  options: Ask = {},
): Promise<{ status: number; text: string }> {
  const { key = flow.stack.inferenceKey, method = "POST", headers, signal, unkept = false } = options;
  const answer = await fetch(`${flow.stack.restUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      tracestate: `vendor=${flow.secrets.prompt}`,
      baggage: `prompt=${flow.secrets.prompt}`,
      cookie: `key=${flow.secrets.unknownKey}`,
      "user-agent": `agent ${flow.secrets.prompt}`,
      ...headers,
    },
    ...(method === "GET" ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const id = answer.headers.get("x-generation-id");
  if (id !== null && answer.ok) generationIds.add(id);
  const text = await answer.text().catch(() => "cut");
  if (!unkept) answered.push(JSON.stringify([...answer.headers]), text);
  return { status: answer.status, text };
}

const say = (fields: object = {}, options?: Ask) => {
  const { prompt } = flow.secrets;
  const body = { model: speechModel, voice: "alloy", response_format: "pcm", input: `Say ${prompt}.` };
  return ask("/audio/speech", { ...body, ...fields }, options);
};

const draw = (fields: object = {}, options?: Ask) =>
  ask("/images", { model: pictureModel, prompt: `A ${flow.secrets.prompt}.`, ...fields }, options);

/** What an upstream says that tells everything. */
function echo(): string {
  const { prompt, vendorKey } = flow.secrets;
  return `You sent ${prompt} with ${vendorKey} and ${flow.stack.inferenceKey}`;
}

function failures(): readonly SpeechBehaviour[] {
  const said = echo();
  const json = { "content-type": "application/json" };
  return [
    ...[400, 401, 429, 500].map((status) => ({
      kind: "error" as const,
      status,
      message: said,
      type: said,
      code: said,
      headers: { "x-request-id": said },
    })),
    { kind: "plain", status: 500, headers: { "content-type": "text/html" }, body: `<p>${said}` },
    { kind: "plain", status: 200, headers: json, body: `{"said": "${said}` },
    { kind: "plain", status: 307, headers: { location: `http://127.0.0.1:1/?${said}` }, body: said },
    { kind: "audio", beforeHeaders: never },
    { kind: "audio", cutAfterBytes: 0 },
  ];
}

describe("secrets and texts are everywhere", () => {
  test("in speech that succeeds", async () => {
    expect((await say({}, { headers: { "x-request-id": requestId } })).status).toBe(200);
    expect((await say({ response_format: "mp3" })).status).toBe(200);
    const provider = { options: { openai: { instructions: flow.secrets.prompt } } };
    expect((await say({ model: eventModel, provider })).status).toBe(200);
    const direct = await speakDirectly(flow.stack, flow.secrets.prompt, `Bearer ${flow.stack.inferenceKey}`);
    answered.push(JSON.stringify(direct.metadata));
  });

  test("in pictures that succeed, with references", async () => {
    expect((await draw()).status).toBe(200);
    expect((await draw({ stream: true })).status).toBe(200);
    expect((await draw({ model: "local/painter", resolution: "512" })).status).toBe(200);
  });

  test("in what upstreams answer when they fail", async () => {
    for (const behaviour of failures()) {
      expect((await say()).status).toBe(200);
      flow.upstream.next(behaviour);
      expect((await say()).status).toBeGreaterThanOrEqual(400);
      if (behaviour.kind === "audio") continue;
      flow.upstream.next(behaviour);
      expect((await draw()).status).toBeGreaterThanOrEqual(400);
      expect((await draw()).status).toBe(200);
    }
    flow.upstream.next({ kind: "audio", stallAfterBytes: 8192 });
    expect(await say()).toEqual({ status: 200, text: "cut" });
    flow.upstream.next({ kind: "error", status: 500, message: echo() });
    const direct = speakDirectly(flow.stack, flow.secrets.prompt, `Bearer ${flow.stack.inferenceKey}`);
    answered.push(JSON.stringify(await direct.then(() => "no error", describeError)));
    expect(answered.at(-1)).not.toContain("no error");
  });

  test("in references that can't be used", async () => {
    const { pictureToken, prompt } = flow.secrets;
    const reference = (url: string) => ({ input_references: [{ type: "image_url", image_url: { url } }] });
    const { baseUrl } = flow.pictures;
    for (const url of [
      `${baseUrl}/${pictureToken}.png?signature=${pictureToken}`,
      `http://user:${pictureToken}@127.0.0.1:1/x.png`,
      `http://10.0.0.1/${pictureToken}`,
      `data:image/png;base64,${btoa(`${prompt} ${pictureToken}`)}`,
      `data:text/plain,${pictureToken}`,
      `file:///${pictureToken}`,
    ]) {
      expect((await draw(reference(url))).status, url).toBe(400);
    }
    expect(flow.pictures.requests.length).toBeGreaterThan(0);
  });

  test("in requests that are refused", async () => {
    const { prompt, unknownKey } = flow.secrets;
    const { managementKey, inferenceKey } = flow.stack;
    expect((await say({}, { key: unknownKey })).status).toBe(401);
    expect((await say({}, { headers: { authorization: `Basic ${unknownKey}` } })).status).toBe(401);
    expect((await say({}, { key: managementKey })).status).toBe(401);
    expect((await say({ model: prompt })).status).toBe(404);
    for (const fields of [
      { voice: prompt },
      { speed: prompt },
      { input: [prompt] },
      { [prompt]: 1, input: 1 },
    ]) {
      expect((await say(fields)).status).toBe(400);
    }
    expect((await draw({ size: prompt })).status).toBe(400);
    expect((await ask("/audio/speech", `{"input": "${prompt}`)).status).toBe(400);
    expect((await say({ input: prompt.repeat(20_000) })).status).toBe(400);
    expect((await ask(`/${unknownKey}?key=${inferenceKey}`, { prompt })).status).toBe(404);
    expect((await ask(`/generation?id=${prompt}`, "", { method: "GET" })).status).toBe(404);
    await expect(ask("/images", "", { headers: { traceparent: prompt } })).resolves.toMatchObject({
      status: 400,
    });
    for (const url of [flow.stack.urls.speech, flow.stack.urls.account]) {
      const answer = await fetch(`${url}/${SpeechService.typeName}/Synthesize?${unknownKey}`, {
        method: "POST",
        headers: { authorization: `Bearer ${inferenceKey}`, "content-type": "application/json" },
        body: `{"input": "${prompt}`,
      });
      answered.push(JSON.stringify([...answer.headers]), await answer.text());
    }
  });

  test("in a key that may spend nothing", async () => {
    const made = await ask(
      "/keys",
      { name: "poor", limit: 0 },
      { key: flow.stack.managementKey, unkept: true },
    );
    expect(made.status).toBe(201);
    const { key } = JSON.parse(made.text) as { key: string };
    flow.canaries.watch("made key", key);
    expect((await say({}, { key })).status).toBe(402);
    expect((await ask("/keys", "", { method: "GET", key: flow.stack.managementKey })).status).toBe(200);
  });

  test("in an account's own provider key, which the provider refuses", async () => {
    const { ownVendorKey } = flow.secrets;
    const key = flow.stack.managementKey;
    expect((await ask("/byok", { provider: "openai", key: ownVendorKey }, { key })).status).toBe(201);
    expect((await ask("/byok", { provider: ownVendorKey, key: [ownVendorKey] }, { key })).status).toBe(400);
    await waitUntil(
      async () => {
        expect((await say()).status).toBe(200);
        return flow.upstream.requests.some(
          ({ headers }) => headers.authorization === `Bearer ${ownVendorKey}`,
        );
      },
      { timeoutMs: 30_000 },
    );
    expect((await ask("/byok", "", { method: "GET", key })).status).toBe(200);
  });

  test("in destinations, one of which fails", async () => {
    const { hookSecret, hookHeader, hookUrlToken } = flow.secrets;
    const key = flow.stack.managementKey;
    const headers = { authorization: `Bearer ${hookHeader}` };
    const path = "/observability/destinations";
    const good = { url: `${flow.hook.baseUrl}/hook`, signingSecret: hookSecret, headers };
    const bad = { url: `${flow.hook.baseUrl}/${hookUrlToken}?token=${hookUrlToken}`, headers };
    for (const config of [good, bad]) {
      expect((await ask(path, { type: "webhook", name: "hook", config }, { key })).status).toBe(201);
    }
    const malformed = { url: hookUrlToken, signingSecret: hookHeader };
    expect((await ask(path, { type: "webhook", name: "x", config: malformed }, { key })).status).toBe(400);
    expect((await ask(path, "", { method: "GET", key })).status).toBe(200);
    expect((await say()).status).toBe(200);
    await waitUntil(() => flow.hook.requests.some((request) => request.path === "/hook"), {
      timeoutMs: 60_000,
    });
    await waitUntil(() => flow.hook.requests.some((request) => request.path.includes(hookUrlToken)));
  });

  test("in an operator's token", async () => {
    const { urls, keyFiles } = flow.stack;
    const env = { ACCOUNT_URL: urls.account, ADMIN_KEY_FILE: keyFiles.keyFile("operator") };
    const { rpc } = await connectAdmin("canary", env);
    const { accounts } = await rpc.listAccounts({});
    expect(accounts).toHaveLength(1);
  });

  test("in a request whose caller leaves, and while a process is away", async () => {
    const leaving = new AbortController();
    flow.upstream.next({ kind: "audio", beforeHeaders: never });
    const asked = say({}, { signal: leaving.signal });
    await waitUntil(() => flow.upstream.requests.some(({ fate }) => fate === "open"));
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await flow.stack.processes.kill("speech");
    expect((await say()).status).toBe(503);
    await flow.stack.processes.restart("speech");
  });
});

describe("none of them stands", () => {
  test("in any form without being found", () => {
    const { canaries, secrets } = flow;
    const text = `before ${secrets.prompt} behind`;
    for (const offset of ["", "a", "ab"]) {
      const bytes = Buffer.from(offset + text);
      for (const form of [
        bytes,
        bytes.toString("hex"),
        bytes.toString("base64"),
        bytes.toString("base64url"),
      ]) {
        expect(canaries.namesIn(form)).toEqual(["prompt"]);
      }
    }
    expect(canaries.namesIn(JSON.stringify({ key: flow.stack.inferenceKey }))).toEqual(["inference key"]);
    expect(canaries.namesIn("before behind")).toEqual([]);
  });

  test("in a metric", async () => {
    const { stack } = flow;
    const gateway = `http://127.0.0.1:${await stack.processes.child("gateway").listeningPort("metrics")}`;
    const bases = [gateway, ...services.map((name) => stack.urls[name])];
    const metrics = await Promise.all(
      bases.map(async (base) => {
        const answer = await fetch(`${base}/metrics`);
        expect(answer.status, base).toBe(200);
        return answer.text();
      }),
    );
    for (const text of metrics) expect(text).toContain("# TYPE ");
    expect(leaksIn(metrics)).toEqual([]);
  });

  test("in an event, neither on Kafka nor as a destination got it", async () => {
    const stage = new KafkaStage(flow.broker.brokers);
    const bus = stage.open();
    const readers = [topic, `${topic}.dead-letter`].map((name) => stage.read(bus, { topic: name }));
    const messages = () => readers.flatMap((reader) => reader.messages);
    const isThere = (id: string) => messages().some(({ value }) => Buffer.from(value).includes(id));
    await waitUntil(() => [...generationIds].every(isThere), { timeoutMs: 60_000, intervalMs: 200 });
    await stage.close();
    const texts = messages().map(({ key, value, headers }) =>
      [key, Buffer.from(value).toString("latin1"), JSON.stringify(headers)].join(" "),
    );
    expect(texts.length).toBeGreaterThan(20);
    expect(texts.some((text) => text.includes("traceparent") && text.includes(requestId))).toBe(true);
    expect(leaksIn(texts)).toEqual([]);
    const delivered = flow.hook.requests.map(({ text }) => text);
    expect(delivered.some((text) => text.includes("gen-tts-"))).toBe(true);
    expect(leaksIn(delivered)).toEqual([]);
  });

  test("in a row of the database", async () => {
    const rows = await allRows(flow.databaseUrl);
    const requestIdAsHex = Buffer.from(requestId).toString("hex");
    expect(rows.some((row) => row.includes(requestIdAsHex))).toBe(true);
    for (const table of ["account.hold", "usage.record", "destination.destination"]) {
      expect(
        rows.some((row) => row.startsWith(`${table} `)),
        table,
      ).toBe(true);
    }
    expect(leaksIn(rows)).toEqual([]);
  });

  test("in what the vendor got, but the texts and its own keys", async () => {
    const texts = flow.upstream.requests.map(({ headers, text }) => `${JSON.stringify(headers)} ${text}`);
    const found = new Set(texts.flatMap((text) => flow.canaries.namesIn(text)));
    expect(found).toEqual(new Set(["prompt", "provider key", "own provider key"]));
    expect(texts.filter((text) => tokenPattern.test(text))).toEqual([]);
  });

  test("in an answer", () => {
    expect(answered.length).toBeGreaterThan(100);
    expect(answered.some((answer) => answer.includes(requestId))).toBe(true);
    // Who made a destination sees its address again, and nothing else that is secret of it.
    const others = leaksIn(answered).filter((leak) => !leak.startsWith("webhook URL: "));
    expect(others).toEqual([]);
  });

  test("in a log line or a span", async () => {
    const { stack, collector } = flow;
    const names = processNames.toReversed();
    for (const name of names) expect(await stack.processes.stop(name), name).toBe(0);
    const lines = stack.processes.lines();
    for (const name of names)
      expect(lines.filter((line) => line.includes(`"process":"${name}"`))).not.toEqual([]);
    expect(lines.filter((line) => line.includes('"trace_id"')).length).toBeGreaterThan(50);
    expect(lines.some((line) => line.includes(requestId))).toBe(true);
    expect(leaksIn(lines)).toEqual([]);
    const exported = collector.receiver.requests.map(({ bytes }) => bytes.toString("latin1"));
    const services = new Set(collector.spans().map(({ resource }) => resource["service.name"]));
    expect(services).toEqual(new Set(names));
    expect(collector.spans().length).toBeGreaterThan(200);
    expect(exported.some((text) => text.includes(requestId))).toBe(true);
    expect(leaksIn(exported)).toEqual([]);
    // No attribute grows with what a client sends.
    const attributes = collector.spans().flatMap((span) => Object.entries(span.attributes));
    expect(attributes.filter(([, value]) => String(value).length > 256)).toEqual([]);
  });
});

/** Those who tell, and what: no canary and no token may. */
function leaksIn(texts: readonly string[]): readonly string[] {
  return [
    ...flow.canaries.leaksIn(texts),
    ...texts.filter((text) => tokenPattern.test(text)).map((text) => `a token: ${text.slice(0, 300)}`),
  ];
}
