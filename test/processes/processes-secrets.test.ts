import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { text as readAll } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { issuers } from "../../lib/identity/issuer.ts";
import {
  describeError,
  flowModel,
  type SpeakOptions,
  type SpeechFlow,
  speak,
  speakDirectly,
  startSpeechFlow,
  tokenPattern,
} from "../support/processes/speech-flow.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { SpeechBehaviour } from "../upstreams/openai/openai-behaviour.ts";

const secretText = "A harpsichord under a violet moon.";
const vendorKey = "vendor-key-0a6d1f8c2b9e4735";
const malformedKey = "sk-violet-and-short";
/** What an upstream that tells everything would say: also of itself. */
const upstreamText = "worker seven of the amber cluster";
const echo = `You sent ${secretText} with ${vendorKey} to ${upstreamText}`;
const unknownKey = generateApiKey();
const eventModel = "openai/gpt-4o-mini-tts";

let flow: SpeechFlow;
/** Headers and bodies that callers got. */
const answered: string[] = [];
const requestIds: string[] = [];

beforeAll(async () => {
  flow = await startSpeechFlow({
    env: { LOG_LEVEL: "trace", SPEECH_FIRST_BYTE_TIMEOUT_MS: "500", SPEECH_IDLE_TIMEOUT_MS: "500" },
    upstream: { apiKey: vendorKey },
  });
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
});

const failures: Record<string, SpeechBehaviour> = {
  ...Object.fromEntries(
    [400, 401, 402, 403, 404, 408, 409, 429, 500, 502, 503, 529].map((status) => [
      `an error ${status}`,
      { kind: "error", status, message: echo, type: echo, code: echo, headers: { "x-request-id": echo } },
    ]),
  ),
  "an error page": {
    kind: "plain",
    status: 500,
    headers: { "content-type": "text/html" },
    body: `<p>${echo}`,
  },
  "an error that is no JSON": json(500, `{"error": "${echo}`),
  "an answer of another type": json(200, `{"said": "${echo}"}`),
  "an answer of a type that echoes": {
    kind: "audio",
    contentType: `text/${vendorKey}; text="${secretText}"`,
  },
  "a redirect": {
    kind: "plain",
    status: 307,
    headers: { location: `http://127.0.0.1:1/?${vendorKey}` },
    body: echo,
  },
  "no answer": { kind: "audio", beforeHeaders: () => new Promise(() => undefined) },
  "a break before the audio": { kind: "audio", cutAfterBytes: 0 },
};

const breaks: Record<string, SpeechBehaviour> = {
  "a break": { kind: "audio", cutAfterBytes: 8192 },
  "a reset": { kind: "audio", cutAfterBytes: 8192, cutWith: "reset" },
  silence: { kind: "audio", stallAfterBytes: 8192 },
};

/** An event with audio, as the upstream of `eventModel` sends them. */
const delta = `data: {"type":"speech.audio.delta","audio":"${Buffer.alloc(512).toString("base64")}"}\n\n`;
const eventFailures: Record<string, SpeechBehaviour> = {
  "an event with an error": events(
    `data: {"type":"error","error":{"message":"${echo}","code":"${echo}"}}\n\n`,
  ),
  "an event that is no JSON": events(`data: ${echo}\n\n`),
  "audio that is no base64": events(`data: {"type":"speech.audio.delta","audio":"${echo}"}\n\n`),
};

describe("a request whose upstream fails by", () => {
  test.for(Object.entries(failures))("%s", ([, behaviour]) => failBothWays(behaviour));

  test.for(Object.entries(eventFailures))("%s", ([, behaviour]) => failBothWays(behaviour, eventModel));

  test.for(Object.entries({ ...breaks, ...afterAudio(eventFailures) }))(
    "%s in the middle",
    async ([, behaviour]) => {
      const model = behaviour.kind === "plain" ? eventModel : flowModel;
      flow.upstream.next(behaviour);
      expect(await ask({ fields: { model } })).toEqual({ status: 200, whole: false });
    },
  );
});

describe("a request", () => {
  test("that succeeds", async () => {
    for (const response_format of ["pcm", "mp3"]) {
      expect(await ask({ fields: { response_format } })).toEqual({ status: 200, whole: true });
    }
    const provider = { options: { openai: { instructions: secretText } } };
    expect(await ask({ fields: { model: eventModel, provider } })).toEqual({ status: 200, whole: true });
    const direct = await speakDirectly(flow.stack, secretText, `Bearer ${flow.stack.inferenceKey}`);
    answered.push(JSON.stringify(direct.metadata));
  });

  test("whose client leaves", async () => {
    const leaving = new AbortController();
    flow.upstream.next({ kind: "audio", beforeHeaders: () => new Promise(() => undefined) });
    const asked = ask({ signal: leaving.signal });
    await waitUntil(() => flow.upstream.requests.some(({ fate }) => fate === "open"));
    leaving.abort();
    await expect(asked).rejects.toThrow();
  });

  test.for([
    ["an unknown key", 401, { key: unknownKey }],
    ["a malformed key", 401, { key: malformedKey }],
    ["a key of another scheme", 401, { headers: { authorization: `Basic ${unknownKey}` } }],
    ["a key that may not", 401, "management"],
    ["a model that is none", 404, { fields: { model: secretText } }],
    ["a voice that is none", 400, { fields: { voice: secretText } }],
    ["a format that is none", 400, { fields: { response_format: secretText } }],
    ["a speed that is none", 400, { fields: { speed: secretText } }],
    ["an input of another type", 400, { fields: { input: [secretText] } }],
    ["too long an input", 400, { fields: { input: secretText.repeat(200) } }],
    ["an input beyond all models", 400, { fields: { input: secretText.repeat(20_000) } }],
    ["a foreign content type", 400, { headers: { "content-type": `text/plain; x="${secretText}"` } }],
  ] as const)("with %s", async ([, status, options]) => {
    const answer = await ask(options === "management" ? { key: flow.stack.managementKey } : options);
    expect(answer).toEqual({ status, whole: true });
  });

  test("that no part of the interface understands", async () => {
    const { restUrl, urls, inferenceKey } = flow.stack;
    const authorization = `Bearer ${inferenceKey}`;
    const broken = `{"input": "${secretText}`;
    for (const [url, type] of [
      [`${restUrl}/audio/speech?key=${unknownKey}`, "application/json"],
      [`${restUrl}/${unknownKey}`, "application/json"],
      [`${urls.speech}/${SpeechService.typeName}/ListSpeechModels`, "application/json"],
      [`${urls.speech}/${SpeechService.typeName}/ListSpeechModels`, "application/proto"],
      [`${urls.speech}/${SpeechService.typeName}/Synthesize`, "application/connect+json"],
      [`${urls.account}/${AccountInternalService.typeName}/Authenticate`, "application/json"],
    ] as const) {
      const headers = { authorization, "content-type": type };
      const answer = await fetch(url, { method: "POST", body: broken, headers });
      const isStream = type === "application/connect+json";
      expect((await keep(answer)).whole).toBe(true);
      expect(answer.ok).toBe(isStream);
    }
    for (const url of [restUrl, urls.speech, urls.account])
      answered.push(await sendRaw(url, `${echo}\r\n\r\n`));
  });

  test("while a process that it needs is away", async () => {
    const { stack, upstream } = flow;
    upstream.next({ kind: "audio", beforeEnd: () => new Promise(() => undefined) });
    const cut = await begin();
    await stack.processes.kill("speech");
    expect(await keep(cut)).toEqual({ status: 200, whole: false });
    expect(await ask()).toEqual({ status: 503, whole: true });
    await stack.processes.restart("speech");
    await stack.processes.kill("account");
    expect(await ask({ key: generateApiKey() })).toEqual({ status: 503, whole: true });
    const direct = speakDirectly(stack, secretText, `Bearer ${stack.inferenceKey}`);
    answered.push(JSON.stringify(await direct.catch(describeError)));
    await stack.processes.restart("account");
  });
});

test("no log line, error or header tells a text, a key or a token", async () => {
  const { stack } = flow;
  await Promise.all(["gateway", "speech", "account"].map((name) => stack.processes.stop(name)));
  const lines = stack.processes.lines();
  const secrets = await allSecrets();
  const isLeak = (text: string) => tokenPattern.test(text) || secrets.some((secret) => text.includes(secret));
  expect(lines.filter(isLeak)).toEqual([]);
  expect(answered.filter(isLeak)).toEqual([]);
  // The lines are there, whole, and the requests are in them.
  for (const line of lines) expect(JSON.parse(line)).toMatchObject({ process: expect.any(String) });
  const logged = lines.join("\n");
  expect(requestIds.filter((id) => !logged.includes(id))).toEqual([]);
  expect(requestIds.length).toBeGreaterThan(50);
  expect(logged).toContain('"level":"debug"');
  expect(isLeak(JSON.stringify({ said: echo }))).toBe(true);
});

/** The failure before the first byte, to a client of the gateway and to one of speech. */
async function failBothWays(behaviour: SpeechBehaviour, model = flowModel): Promise<void> {
  // A success in between keeps the endpoint's breaker closed.
  expect((await ask({ fields: { model } })).status).toBe(200);
  flow.upstream.next(behaviour);
  expect((await ask({ fields: { model } })).status).toBeGreaterThanOrEqual(400);
  expect((await ask({ fields: { model } })).status).toBe(200);
  flow.upstream.next(behaviour);
  const direct = speakDirectly(flow.stack, secretText, `Bearer ${flow.stack.inferenceKey}`, { model });
  const thrown = await direct.then(() => undefined, describeError);
  expect(thrown).toBeDefined();
  answered.push(JSON.stringify(thrown));
}

/** Asks to speak the secret text and keeps what comes back. */
async function ask(options: SpeakOptions = {}): Promise<{ status: number; whole: boolean }> {
  return keep(await begin(options));
}

/** An answer whose headers are there. */
async function begin(options: SpeakOptions = {}): Promise<Response> {
  const answer = await speak(flow.stack, secretText, options);
  requestIds.push(answer.headers.get("x-request-id") ?? "none");
  return answer;
}

async function keep(answer: Response): Promise<{ status: number; whole: boolean }> {
  answered.push(JSON.stringify([...answer.headers]));
  try {
    answered.push(await answer.text());
    return { status: answer.status, whole: true };
  } catch {
    return { status: answer.status, whole: false };
  }
}

async function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return readAll(socket);
}

async function allSecrets(): Promise<string[]> {
  const { stack, databaseUrl } = flow;
  const keyFiles = await Promise.all(
    issuers.map((issuer) => readFile(stack.keyFiles.keyFile(issuer), "utf8")),
  );
  const privateParts = keyFiles.map((file) => (JSON.parse(file) as { d: string }).d);
  const { password } = new URL(databaseUrl);
  const keys = [stack.inferenceKey, stack.managementKey, unknownKey, malformedKey, vendorKey];
  const texts = [secretText, upstreamText, ...keys].flatMap((text) => [
    text,
    encodeURIComponent(text),
    Buffer.from(text).toString("base64").replace(/=+$/, ""),
  ]);
  return [...texts, ...privateParts, password].map((secret) => {
    if (secret.length < 16) throw new Error("too short to be looked for");
    return secret;
  });
}

function json(status: number, body: string): SpeechBehaviour {
  return { kind: "plain", status, headers: { "content-type": "application/json" }, body };
}

function events(body: string): SpeechBehaviour {
  return { kind: "plain", status: 200, headers: { "content-type": "text/event-stream" }, body };
}

function afterAudio(behaviours: Record<string, SpeechBehaviour>): Record<string, SpeechBehaviour> {
  return Object.fromEntries(
    Object.entries(behaviours).map(([name, behaviour]) => [
      name,
      behaviour.kind === "plain" ? { ...behaviour, body: delta + behaviour.body } : behaviour,
    ]),
  );
}
