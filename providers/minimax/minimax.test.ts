import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  minimaxAudio,
  minimaxEnd,
  minimaxStatus,
  startMinimaxUpstream,
} from "../../test/upstreams/minimax.ts";
import type { AudioBehaviour, SpeechBehaviour } from "../../test/upstreams/openai/openai-behaviour.ts";
import { eventOf } from "../../test/upstreams/openai/openai-speech.ts";
import { createAudioSource, firstBytes } from "../../test/upstreams/stand-in/audio-source.ts";
import { attempt } from "../adapter.suite.ts";
import type { ProviderErrorKind, SpeechCall } from "../contract.ts";
import { describeSpeechProvider, type SpeechFailure } from "../provider.suite.ts";
import {
  createSpeechSetup,
  type SpeechVendor,
  type SpeechVendorSetup,
  secretWords,
  speechFailure,
  testEventsEnd,
  wireFailures,
} from "../speech-upstream.suite.ts";
import { minimax } from "./index.ts";

const vendor: SpeechVendor = {
  manifest: minimax,
  startUpstream: startMinimaxUpstream,
  call: { upstreamModel: "speech-2.8-hd", voice: "English_expressive_narrator" },
  formats: ["mp3", "pcm"],
};

const eventStream = { "content-type": "text/event-stream" };
const eventsOf = (...events: readonly object[]): SpeechBehaviour => ({
  kind: "plain",
  status: 200,
  headers: eventStream,
  body: events.map((event) => eventOf(event)).join(""),
});

/** A failure that has the status of a success, in place of the events or as one of them. */
function inside200(code: number, kind: ProviderErrorKind): readonly SpeechFailure<SpeechVendorSetup>[] {
  const status = minimaxStatus(code, secretWords);
  const json = { "content-type": "application/json; charset=utf-8" };
  const provoke =
    (behaviour: SpeechBehaviour) =>
    ({ upstream }: SpeechVendorSetup) =>
      void upstream.next(behaviour);
  const whole = { kind: "plain", status: 200, headers: json, body: JSON.stringify(status) } as const;
  return [
    { name: `${code} in place of events`, kind, provoke: provoke(whole) },
    { name: `${code} as an event`, kind, provoke: provoke(eventsOf(status)) },
  ];
}

const ofStatus = (status: number, kind: ProviderErrorKind) =>
  speechFailure(`HTTP ${status}`, kind, { kind: "error", status, message: secretWords });

/** The vendor's page of error codes, and what it answers besides. */
const codes: readonly (readonly [code: number, kind: ProviderErrorKind])[] = [
  [1000, "upstream"],
  [1001, "timeout"],
  [1002, "overloaded"],
  [1004, "credentials"],
  [1008, "credentials"],
  [1013, "upstream"],
  [1024, "upstream"],
  [1026, "content_policy"],
  [1027, "content_policy"],
  [1028, "credentials"],
  [1030, "credentials"],
  [1033, "upstream"],
  [1039, "overloaded"],
  [1041, "overloaded"],
  [1042, "invalid_request"],
  [2013, "invalid_request"],
  [2042, "invalid_request"],
  [2045, "overloaded"],
  [2049, "credentials"],
  [2054, "invalid_request"],
  [2056, "credentials"],
  [2061, "credentials"],
  [20132, "invalid_request"],
  [99_999, "upstream"],
];

const failures: readonly SpeechFailure<SpeechVendorSetup>[] = [
  ...wireFailures,
  ...codes.flatMap(([code, kind]) => inside200(code, kind)),
  ofStatus(401, "credentials"),
  ofStatus(429, "overloaded"),
  ofStatus(500, "upstream"),
  ofStatus(502, "upstream"),
  {
    name: "a wrong key",
    kind: "credentials",
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
  {
    name: "an unknown voice",
    kind: "invalid_request",
    provoke: ({ call }) => ({ call: { ...call, voice: "nobody" } }),
  },
  speechFailure("an end without audio", "network", { kind: "audio", totalBytes: 0, omitDone: true }),
];

describeSpeechProvider("MiniMax", () => createSpeechSetup(vendor), failures);

describe("MiniMax's speech", () => {
  let given: Awaited<ReturnType<typeof createSpeechSetup>>;
  beforeAll(async () => {
    given = await createSpeechSetup(vendor);
  });
  afterAll(async () => await given?.close());
  const speak = async (behaviour: SpeechBehaviour, changes: Partial<SpeechCall> = {}) => {
    const { adapter, call, connection, upstream } = given;
    upstream.next(behaviour);
    const answer = await adapter.synthesize({ ...call, ...changes }, attempt(connection).context);
    const audio = Buffer.concat(await Array.fromAsync(answer.audio));
    return { audio, report: answer.report(), shape: [answer.format, answer.sampleRateHz] };
  };
  const usual: AudioBehaviour = { kind: "audio", totalBytes: 4000, chunkBytes: 1000 };
  const asked = {
    model: "speech-2.8-hd",
    text: "A sentence nobody else may read.",
    stream: true,
    stream_options: { exclude_aggregated_audio: true },
    output_format: "hex",
    voice_setting: { voice_id: "English_expressive_narrator", speed: 1.5 },
    audio_setting: { format: "pcm", sample_rate: 32_000, channel: 1 },
  };
  const call: Partial<SpeechCall> = { format: "pcm", sampleRateHz: 32_000, speed: 1.5 };

  test("is asked for in the vendor's words, and comes as it was asked for", async () => {
    const { audio, report, shape } = await speak(usual, call);
    expect(shape).toEqual(["pcm", 32_000]);
    expect(audio.equals(firstBytes(createAudioSource("pcm"), 4000))).toBe(true);
    expect(report).toEqual({ characters: asked.text.length });
    expect(given.upstream.requests.at(-1)?.json).toEqual(asked);
  });

  test("takes options, which replace nothing that is ours", async () => {
    const options = {
      ...{ model: "x", text: "x", stream: false, stream_options: {}, output_format: "url" },
      audio_setting: { format: "flac" },
      voice_setting: { emotion: "happy", voice_id: "x", speed: 9 },
      language_boost: "English",
    };
    await speak(usual, { ...call, options });
    const voice_setting = { ...asked.voice_setting, emotion: "happy" };
    expect(given.upstream.requests.at(-1)?.json).toEqual({
      ...asked,
      voice_setting,
      language_boost: "English",
    });
    await speak(usual, { ...call, options: { voice_setting: "x" } });
    expect(given.upstream.requests.at(-1)?.json).toEqual(asked);
  });

  const [one, two] = [Buffer.from("0001", "hex"), Buffer.from("020304", "hex")];
  const all = Buffer.concat([one, two]);

  test("does not hand out the audio that the last event repeats", async () => {
    const events = eventsOf(minimaxAudio(one), minimaxAudio(two), minimaxEnd(all, undefined));
    expect((await speak(events)).audio).toEqual(all);
  });

  test("hands out the audio of a last event that is the only one", async () => {
    expect((await speak(eventsOf(minimaxEnd(all, undefined)))).audio).toEqual(all);
  });

  test.each([
    ["without any audio", minimaxEnd(Buffer.alloc(0), undefined), "bad_answer"],
    ["with audio that is not hex", { data: { audio: "0g", status: 1 } }, "bad_answer"],
    ["without its last event", minimaxAudio(one), "network"],
  ] as const)("an answer %s is a failure", async (_, event, kind) => {
    await expect(speak(eventsOf(event))).rejects.toMatchObject({ kind });
  });

  test("breaks with a failure amid the audio", async () => {
    await expect(speak({ ...usual, errorAfterBytes: 2000 })).rejects.toMatchObject({ kind: "upstream" });
    const late = { ...minimaxEnd(Buffer.alloc(0), undefined), ...minimaxStatus(1027, "output sensitive") };
    await expect(speak(eventsOf(minimaxAudio(one), late))).rejects.toMatchObject({ kind: "content_policy" });
  });

  test.each<[object | null, unknown]>([
    [null, undefined],
    [{ audio_length: 100 }, undefined],
    [{ usage_characters: 0 }, { characters: 0 }],
    [{ usage_characters: -1 }, { characters: -1 }],
    [{ usage_characters: "26" }, { characters: Number.NaN }],
  ])("hands its report on as it is: %o", async (usage, report) => {
    expect((await speak({ ...usual, usage })).report).toEqual(report);
  });

  testEventsEnd(() => given, ["mp3", "pcm"]);
});
