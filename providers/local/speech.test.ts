import { afterAll, afterEach, describe, expect, it } from "vitest";
import { noResults } from "../../test/fakes/no-results.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { ProviderError, type SpeechAnswer, type SpeechCall } from "../contract.ts";
import { describeSpeechProvider } from "../provider.suite.ts";
import { createLocalProvider, type LocalProvider, type LocalProviderOptions } from "./engine.ts";
import { local } from "./index.ts";
import { speakableText } from "./speakable-text.ts";
import { textSegments } from "./text-segments.ts";

const sentence = "Hello from the gateway, this is a test of streaming speech.";
const story = Array.from(
  { length: 12 },
  (_, index) => `This is sentence number ${index + 1}, and it is long enough to be spoken by itself.`,
).join(" ");

const segmentsOfStory = [...textSegments(speakableText(story), 240)].length;

const opened: LocalProvider[] = [];

function open(options: LocalProviderOptions = {}): LocalProvider {
  const provider = createLocalProvider({ threads: 1, ...options });
  opened.push(provider);
  return provider;
}

const shared = createLocalProvider({ threads: 1 });

afterEach(async () => {
  await Promise.all(opened.splice(0).map((provider) => provider.close()));
});
afterAll(() => shared.close());

const connection = { baseUrl: "", apiKey: "" };
const defaults: SpeechCall = {
  upstreamModel: "flite",
  input: sentence,
  voice: "slt",
  format: "pcm",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

async function begin(
  provider: LocalProvider,
  call: Partial<SpeechCall> = {},
  signal = new AbortController().signal,
): Promise<SpeechAnswer> {
  return provider.speech.synthesize(
    { ...defaults, ...call },
    { signal, connection, onSent: () => undefined },
  );
}

async function readAll(answer: SpeechAnswer): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(answer.audio));
}

async function speak(call: Partial<SpeechCall> = {}): Promise<Buffer> {
  return readAll(await begin(shared, call));
}

async function failureOf(promise: Promise<unknown>): Promise<ProviderError> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ProviderError);
  return thrown as ProviderError;
}

const idle = ({ pool }: LocalProvider) => pool.running === 0 && pool.waiting === 0;

function rootMeanSquare(pcm: Buffer): number {
  let sum = 0;
  for (let at = 0; at < pcm.length; at += 2) sum += pcm.readInt16LE(at) ** 2;
  return Math.sqrt(sum / (pcm.length / 2));
}

describeSpeechProvider("the engine in this process", async () => {
  const provider = createLocalProvider({ threads: 1 });
  const { pool, speech, close } = provider;
  const repeated = "These very words are said again and again until nobody can bear to hear them. ";
  const segmentBytes = (await readAll(await begin(provider, { input: repeated }))).length;
  const producedBytes = () => pool.completed * segmentBytes;
  const longCall = { ...defaults, input: repeated.repeat(6) };
  return {
    adapter: speech,
    connection,
    call: { ...defaults, input: story },
    running: () => pool.running + pool.waiting,
    pace: { longCall, producedBytes, maxAheadBytes: 2 * segmentBytes },
    close,
  };
}, [
  {
    name: "a text without words",
    kind: "nothing_to_speak",
    provoke: () => ({ call: { ...defaults, input: "?!" } }),
  },
  {
    name: "an unknown voice",
    kind: "invalid_request",
    provoke: () => ({ call: { ...defaults, voice: "x" } }),
  },
]);

describe("what it speaks", () => {
  it.each(["slt", "rms", "awb"])(
    "is 24 kHz mono audio of about the expected length: voice %s",
    async (voice) => {
      const answer = await begin(shared, { voice });
      expect(answer).toMatchObject({ format: "pcm", sampleRateHz: 24_000, channels: 1 });
      const pcm = await readAll(answer);
      const seconds = pcm.length / 2 / 24_000;
      expect(seconds).toBeGreaterThan(3);
      expect(seconds).toBeLessThan(5.5);
      expect(rootMeanSquare(pcm)).toBeGreaterThan(1_000);
      expect(answer.report()?.tokens).toBeUndefined();
    },
  );

  it("is equally loud in every voice, and cut off in none", async () => {
    const input = "Please say every word loudly, clearly and slowly: yes, no, up, down, apple, orange!";
    const spoken = await Promise.all(["slt", "rms", "awb"].map((voice) => speak({ input, voice })));
    const decibels = spoken.map((pcm) => 20 * Math.log10(rootMeanSquare(pcm)));
    expect(Math.max(...decibels) - Math.min(...decibels)).toBeLessThan(1.5);
    for (const pcm of spoken) {
      const samples = new Int16Array(pcm.buffer, pcm.byteOffset, pcm.length >> 1);
      expect(samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)).toBeLessThan(32_767);
    }
  });

  it("is the same for the same request, and differs between voices and texts", async () => {
    const first = await speak();
    expect(first.equals(await speak())).toBe(true);
    const others = await Promise.all([
      speak({ voice: "rms" }),
      speak({ voice: "awb" }),
      speak({ input: "Some other words." }),
    ]);
    for (const other of others) expect(first.equals(other)).toBe(false);
  });

  it.each([
    [0.25, 3.4, 4.6],
    [0.5, 1.8, 2.2],
    [2, 0.45, 0.55],
    [4, 0.2, 0.35],
  ])("follows speed %d", async (speed, least, most) => {
    const ratio = (await speak({ speed })).length / (await speak()).length;
    expect(ratio).toBeGreaterThan(least);
    expect(ratio).toBeLessThan(most);
  });

  it("says all of a long text: twice the text takes about twice as long", async () => {
    const ratio =
      (await speak({ input: `${story} ${story}` })).length / (await speak({ input: story })).length;
    expect(ratio).toBeCloseTo(2, 1);
  });

  it("reads what could harm the engine as plain text", async () => {
    const inputs = [
      "-o /etc/passwd --help",
      "x\u0000y",
      "<speak>hi</speak>",
      "'\"`$(ls); %s%n",
      "z".repeat(300),
    ];
    for (const input of inputs) expect((await speak({ input })).length).toBeGreaterThan(0);
  });
});

describe("what it refuses", () => {
  it.each(["", " \n\t", "...?! --", "你好，世界", "Привет, мир", "\u0000\u0007", "🎉"])(
    "a text with nothing to be spoken: %j",
    async (input) => {
      const provider = open();
      expect((await failureOf(begin(provider, { input }))).kind).toBe("nothing_to_speak");
      expect(idle(provider)).toBe(true);
    },
  );

  it.each([
    { format: "mp3" as const },
    { voice: "nobody" },
    { voice: "/tmp/voice.flitevox" },
    { speed: 0.2 },
    { speed: 5 },
    { speed: Number.NaN },
  ])("what it does not have: %j", async (call) => {
    expect((await failureOf(begin(shared, call))).kind).toBe("invalid_request");
  });

  it("a request that is over before it begins", async () => {
    const provider = open();
    expect((await failureOf(begin(provider, {}, AbortSignal.abort()))).kind).toBe("timeout");
    expect(idle(provider)).toBe(true);
  });

  it("a new request while too many segments wait; those that have begun finish", async () => {
    const provider = open({ maxWaiting: 2 });
    const admitted = [await begin(provider), await begin(provider), await begin(provider)];
    const refused = await failureOf(begin(provider));
    expect(refused).toMatchObject({ kind: "engine_full", retryable: true, retryAfterMs: 1_000 });
    const whole = await speak();
    for (const pcm of await Promise.all(admitted.map(readAll))) expect(pcm.equals(whole)).toBe(true);
    expect((await readAll(await begin(provider))).equals(whole)).toBe(true);
  });
});

describe("how it streams", () => {
  it("gives the first audio before the rest is made, in small chunks", async () => {
    const provider = open();
    let madeAtFirst: number | undefined;
    for await (const chunk of (await begin(provider, { input: story })).audio) {
      madeAtFirst ??= provider.pool.completed;
      expect(chunk.length).toBeGreaterThan(0);
      expect(chunk.length).toBeLessThanOrEqual(16 * 1024);
    }
    expect(segmentsOfStory).toBeGreaterThan(10);
    expect(madeAtFirst).toBe(1);
    expect(provider.pool.completed).toBe(segmentsOfStory);
  });

  it("makes one segment ahead of a consumer that stands still", async () => {
    const provider = open();
    const chunks = (await begin(provider, { input: story })).audio[Symbol.asyncIterator]();
    await waitUntil(() => idle(provider));
    expect(provider.pool.completed).toBe(1);
    await chunks.next();
    await waitUntil(() => idle(provider));
    await chunks.next();
    await waitUntil(() => idle(provider));
    expect(provider.pool.completed).toBe(2);
  });

  it("takes turns: a short text that comes later ends before a long one", async () => {
    const provider = open();
    const ended: string[] = [];
    const long = readAll(await begin(provider, { input: story })).then(() => ended.push("long"));
    const short = readAll(await begin(provider)).then(() => ended.push("short"));
    await Promise.all([long, short]);
    expect(ended).toEqual(["short", "long"]);
  });
});

describe("how it stops", () => {
  /** Whether the pool makes nothing but what is asked of it from now on. */
  async function expectNothingMore(provider: LocalProvider): Promise<void> {
    await waitUntil(() => idle(provider));
    const { completed } = provider.pool;
    await readAll(await begin(provider, { input: "One segment." }));
    expect(provider.pool.completed).toBe(completed + 1);
  }

  it("after an abort in the middle: the next read throws, and nothing more is made", async () => {
    const provider = open();
    const controller = new AbortController();
    const { audio } = await begin(provider, { input: story }, controller.signal);
    const chunks = audio[Symbol.asyncIterator]();
    await chunks.next();
    controller.abort();
    expect((await failureOf(chunks.next())).kind).toBe("timeout");
    await expectNothingMore(provider);
  });

  it("after an abort while its consumer waits, with the reason given where it is a ProviderError", async () => {
    const provider = open();
    const others = [await begin(provider, { input: story }), await begin(provider)];
    const controller = new AbortController();
    const { audio } = await begin(provider, { input: story }, controller.signal);
    const next = failureOf(audio[Symbol.asyncIterator]().next());
    const { waiting } = provider.pool;
    controller.abort(new ProviderError("network", "the reason"));
    expect(provider.pool.waiting).toBe(waiting - 1);
    expect((await next).message).toBe("the reason");
    for (const { audio: other } of others) await other[Symbol.asyncIterator]().return?.();
    await expectNothingMore(provider);
  });

  it("after an early return, in the middle and before the first read", async () => {
    const provider = open();
    for await (const _ of (await begin(provider, { input: story })).audio) break;
    await expectNothingMore(provider);
    const busy = await begin(provider, { input: story });
    const unread = (await begin(provider)).audio[Symbol.asyncIterator]();
    expect(provider.pool.waiting).toBe(1);
    await unread.return?.();
    expect(provider.pool.waiting).toBe(0);
    expect(await unread.next()).toEqual({ done: true, value: undefined });
    await busy.audio[Symbol.asyncIterator]().return?.();
    await expectNothingMore(provider);
  });

  it("when closed, with an error that lets others try", async () => {
    const provider = await local.create({
      http: { request: () => Promise.reject(new Error("no network")) },
      fetchResult: noResults,
    });
    const answer = await provider.speech?.synthesize(
      {
        upstreamModel: "flite",
        input: story,
        voice: "slt",
        format: "pcm",
        sampleRateHz: 24_000,
        channels: 1,
        speed: 1,
        options: {},
        settings: {},
      },
      {
        signal: new AbortController().signal,
        connection: { baseUrl: "", apiKey: "" },
        onSent: () => undefined,
      },
    );
    const chunks = answer?.audio[Symbol.asyncIterator]();
    expect((await chunks?.next())?.done).toBe(false);
    await provider.close?.();
    const rest = async () => {
      while ((await chunks?.next())?.done === false);
    };
    expect((await failureOf(rest())).retryable).toBe(true);
  });
});
