import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { mp3Frames, samplesOf } from "../support/mp3-frames.ts";
import {
  maxBodyMib,
  openSharedStandalone,
  type SharedStandalone,
} from "../support/processes/shared-standalone.ts";
import { bytesOf, type SpeakOptions, speak } from "../support/processes/standalone.ts";
import { errorOf, speechPath } from "../support/services/gateway-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { OpenAiUpstream } from "../upstreams/openai/openai.ts";

const sampleRateHz = 24_000;
const sentence = "The quick brown fox jumps over the lazy dog, and then it rests in the shade.";
const hello = { model: "local/flite", input: "Hello." };
const maxBodyBytes = maxBodyMib << 20;

let upstream: OpenAiUpstream;
/** What it had received of others before. */
let receivedBefore: number;
let stack: SharedStandalone;

beforeAll(async () => {
  stack = await openSharedStandalone();
  ({ upstream } = stack);
  receivedBefore = upstream.requests.length;
});

function say(body: unknown, options: SpeakOptions = {}): Promise<Response> {
  return speak(stack, stack.inferenceKey, body, options);
}

async function pcmOf(body: object): Promise<Buffer> {
  const response = await say({ ...hello, response_format: "pcm", ...body });
  expect(response.status).toBe(200);
  return bytesOf(response);
}

/** Seconds of CPU that the process has used so far (proc_pid_stat(5): utime and stime, in 1/100 s). */
async function cpuSeconds(): Promise<number> {
  const text = await readFile(`/proc/${stack.child.pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

describe("the built-in engine", () => {
  test.for([
    ["mp3", "audio/mpeg"],
    ["pcm", "audio/pcm"],
  ])("answers %s with exactly these headers", async ([format, contentType]) => {
    const response = await say({ ...hello, response_format: format }, { headers: { "x-request-id": "r-1" } });
    expect(response.status).toBe(200);
    expect((await bytesOf(response)).length).toBeGreaterThan(1000);
    const { date, "x-generation-id": generationId, ...headers } = Object.fromEntries(response.headers);
    expect(headers).toEqual({
      connection: "keep-alive",
      "content-type": contentType,
      "keep-alive": expect.stringMatching(/^timeout=/),
      "transfer-encoding": "chunked",
      "x-audio-channels": "1",
      "x-audio-sample-rate": String(sampleRateHz),
      "x-request-id": "r-1",
    });
    expect(date).toMatch(/GMT$/);
    expect(generationId).toMatch(/^gen-tts-[\w-]{16,}$/);
  });

  test("answers mp3 unless told otherwise, under a request id of our own", async () => {
    const response = await say(hello);
    expect(response.headers.get("content-type")).toBe("audio/mpeg");
    expect(response.headers.get("x-request-id")).toMatch(/^req-/);
    expect(mp3Frames(await bytesOf(response)).length).toBeGreaterThan(10);
  });

  test("speaks the whole text in either format, in the same time", async () => {
    const input = `${sentence} ${sentence} And this is the end of it.`;
    const pcm = await pcmOf({ input });
    expect(pcm.length % 2).toBe(0);
    const seconds = pcm.length / 2 / sampleRateHz;
    // People say about 15 characters a second.
    expect(input.length / seconds).toBeGreaterThan(8);
    expect(input.length / seconds).toBeLessThan(25);
    const samples = new Int16Array(new Uint8Array(pcm).buffer);
    const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    expect(loudest).toBeGreaterThan(3000);

    const frames = mp3Frames(await bytesOf(await say({ ...hello, input })));
    for (const frame of frames) expect(frame).toMatchObject({ sampleRateHz, channels: 1 });
    expect(samplesOf(frames)).toBeGreaterThanOrEqual(pcm.length / 2);
    // The encoder looks ahead and fills up its last frame.
    expect(samplesOf(frames)).toBeLessThan(pcm.length / 2 + 4 * 1152);
  });

  test("is twice as fast at speed 2 and half as fast at speed 0.5", async () => {
    const normal = (await pcmOf({ input: sentence })).length;
    const fast = (await pcmOf({ input: sentence, speed: 2 })).length;
    const slow = (await pcmOf({ input: sentence, speed: 0.5 })).length;
    expect(fast / normal).toBeGreaterThan(0.42);
    expect(fast / normal).toBeLessThan(0.58);
    expect(slow / normal).toBeGreaterThan(1.75);
    expect(slow / normal).toBeLessThan(2.25);
  });

  test("has three voices; the first is the one that speaks unasked", async () => {
    const [slt, rms, awb] = await Promise.all(["slt", "rms", "awb"].map((voice) => pcmOf({ voice })));
    expect(slt?.equals(await pcmOf({}))).toBe(true);
    expect(slt?.equals(rms ?? slt)).toBe(false);
    expect(rms?.equals(awb ?? rms)).toBe(false);
  });

  test("gives each of many at a time what it would get alone", async () => {
    const inputs = ["One moment.", "Two birds.", "Three coins, all gold.", "Four winds from the north."];
    const alone: Buffer[] = [];
    for (const input of inputs) alone.push(await bytesOf(await say({ ...hello, input })));
    const together = await Promise.all(
      [...inputs, ...inputs].map(async (input) => bytesOf(await say({ ...hello, input }))),
    );
    for (const [index, audio] of together.entries()) {
      expect(alone[index % inputs.length]?.equals(audio)).toBe(true);
    }
  });

  test("says words of what it can, whatever else stands beside them", async () => {
    const plain = await pcmOf({ input: "Good morning." });
    expect((await pcmOf({ input: "Good morning. 你好 😀" })).equals(plain)).toBe(true);
  });

  test("sends the beginning long before the end is made, and stops when nobody listens", async (context) => {
    context.skip(process.platform !== "linux", "reads the CPU time of a process from /proc");
    const input = `${sentence} `.repeat(25);
    await pcmOf({});
    const before = await cpuSeconds();
    const whole = await pcmOf({ input });
    const between = await settledCpuSeconds();
    const leaving = new AbortController();
    const response = await say({ ...hello, response_format: "pcm", input }, { signal: leaving.signal });
    const first = await response.body?.getReader().read();
    expect(first?.value?.length).toBeGreaterThan(0);
    expect(first?.value?.length).toBeLessThan(whole.length / 4);
    leaving.abort();
    const after = await settledCpuSeconds();
    expect(between - before).toBeGreaterThan(0.3);
    expect(after - between).toBeLessThan((between - before) / 3);
    expect((await pcmOf({})).length).toBeGreaterThan(0);
  });
});

/** The CPU time used once the process has gone idle. */
async function settledCpuSeconds(): Promise<number> {
  let last = Number.NaN;
  const isIdle = async () => {
    const before = last;
    last = await cpuSeconds();
    return last - before <= 0.01;
  };
  await waitUntil(isIdle, { timeoutMs: 20_000, intervalMs: 200 });
  return last;
}

/** A fault in a request, and what a request that has no other is answered. */
interface Fault {
  readonly name: string;
  readonly answer: { readonly status: number; readonly reason: string };
  /** Faults that change the same part can't be in one request. */
  readonly part: string;
  readonly path?: string;
  readonly headers?: () => Record<string, string>;
  readonly fields?: Record<string, unknown>;
  readonly text?: (json: string) => string;
}

const invalid = { status: 400, reason: "invalid_body" };
const unsupported = { status: 400, reason: "unsupported_parameter" };
const unauthorized = (reason: string) => ({ status: 401, reason });
const notFound = (reason: string) => ({ status: 404, reason });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** In the order of checks. */
const faults: readonly Fault[] = [
  { name: "no such route", part: "path", path: "/api/v1/audio/speeches", answer: notFound("route_unknown") },
  {
    name: "no key",
    part: "key",
    headers: () => ({ authorization: "" }),
    answer: unauthorized("key_missing"),
  },
  {
    name: "another scheme",
    part: "key",
    headers: () => ({ authorization: "Basic c2s6c2s=" }),
    answer: unauthorized("key_unknown"),
  },
  {
    name: "an unknown key",
    part: "key",
    headers: () => bearer(generateApiKey()),
    answer: unauthorized("key_unknown"),
  },
  {
    name: "a management key",
    part: "key",
    headers: () => bearer(stack.managementKey),
    answer: unauthorized("inference_key_required"),
  },
  {
    name: "a body that is too large",
    part: "size",
    text: (json) => json + " ".repeat(maxBodyBytes),
    answer: { status: 400, reason: "body_too_large" },
  },
  {
    name: "a body of another type",
    part: "type",
    headers: () => ({ "content-type": "text/plain" }),
    answer: invalid,
  },
  { name: "no JSON", part: "json", text: (json) => `${json}}`, answer: invalid },
  { name: "a field of a wrong type", part: "speed", fields: { speed: "fast" }, answer: invalid },
  {
    name: "an unknown model",
    part: "model",
    fields: { model: "no/such" },
    answer: notFound("model_unknown"),
  },
  {
    name: "no provider left",
    part: "provider",
    fields: { provider: { only: ["nobody"] } },
    answer: notFound("no_endpoint_left"),
  },
  { name: "an unknown voice", part: "voice", fields: { voice: "nobody" }, answer: unsupported },
  {
    name: "nothing to speak",
    part: "input",
    fields: { input: "… 😀 你好" },
    answer: { status: 400, reason: "nothing_to_speak" },
  },
];

function sayWith(present: readonly Fault[]): Promise<Response> {
  const fields = Object.assign({ ...hello }, ...present.map((fault) => fault.fields));
  const text = present.reduce((json, fault) => fault.text?.(json) ?? json, JSON.stringify(fields));
  const headers = Object.assign({}, ...present.map((fault) => fault.headers?.()));
  const path = present.find((fault) => fault.path !== undefined)?.path ?? speechPath;
  return fetch(stack.baseUrl + path, {
    method: "POST",
    body: text,
    headers: { ...bearer(stack.inferenceKey), "content-type": "application/json", ...headers },
  });
}

describe("of two faults the one that is checked first is answered:", () => {
  test.for(faults.map((fault, index) => [fault.name, index] as const))("%s", async ([, index]) => {
    const fault = faults[index] as Fault;
    const later = faults.slice(index + 1).filter(({ part }) => part !== fault.part);
    expect(await errorOf(await sayWith([fault]))).toEqual(fault.answer);
    for (const other of later) {
      const answer = { beside: other.name, ...(await errorOf(await sayWith([fault, other]))) };
      expect(answer).toEqual({ beside: other.name, ...fault.answer });
    }
  });

  test("and no provider hears of it", () => {
    expect(upstream.requests).toHaveLength(receivedBefore);
  });
});

describe("errors", () => {
  test.for<[string, unknown, number, object]>([
    ["an unknown voice", { ...hello, voice: "nobody" }, 400, { path: "voice" }],
    ["no voice where one is needed", { model: "openai/tts-1", input: "Hello." }, 400, { path: "voice" }],
    ["a long text", { ...hello, input: "a".repeat(4097) }, 400, { path: "input" }],
    ["a text longer than any model's", { ...hello, input: "a".repeat(500_000) }, 400, { path: "input" }],
    ["no text", { model: hello.model }, 400, { path: "input", message: "is required" }],
    ["an empty text", { ...hello, input: "" }, 400, { path: "input" }],
    ["another format", { ...hello, response_format: "opus" }, 400, { path: "response_format" }],
    ["too slow", { ...hello, speed: 0.2 }, 400, { path: "speed" }],
    ["too fast", { ...hello, speed: 4.1 }, 400, { path: "speed" }],
    ["a model that is no text", { ...hello, model: 7 }, 400, { path: "model" }],
    ["a list", [hello], 400, { path: "", message: "must be a JSON object" }],
    ["half a JSON", '{"model":', 400, { path: "", message: "must be JSON" }],
    ["nothing at all", "", 400, { path: "" }],
  ])("name the place: %s", async ([, body, code, issue]) => {
    const response = await say(body);
    expect(response.status).toBe(code);
    expect(response.headers.get("content-type")).toBe("application/json");
    const { error } = (await response.json()) as { error: { metadata: { issues: object[] } } };
    expect(error).toEqual({
      code,
      message: "Invalid request parameters",
      metadata: {
        reason: expect.stringMatching(/^(invalid_body|unsupported_parameter)$/),
        issues: [{ message: expect.stringMatching(/^(is|must) /), ...issue }],
      },
    });
  });
});
