import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mistralError, mistralFault, startMistralUpstream } from "../../test/upstreams/mistral.ts";
import type { AudioBehaviour } from "../../test/upstreams/openai/openai-behaviour.ts";
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
  wrongKey,
} from "../speech-upstream.suite.ts";
import { mistral } from "./index.ts";

const vendor: SpeechVendor = {
  manifest: mistral,
  startUpstream: startMistralUpstream,
  call: { upstreamModel: "voxtral-mini-tts-3-0", voice: "gb_jane_neutral", format: "wav" },
  formats: ["mp3"],
};

const refused = (name: string, kind: ProviderErrorKind, status: number, body: object) =>
  speechFailure(`${status} ${name}`, kind, {
    kind: "plain",
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const of = (status: number, type: string, code: string, kind: ProviderErrorKind) =>
  refused(type, kind, status, mistralError(status, type, code, secretWords));

/** The vendor's page of what goes wrong with speech, and what it answers elsewhere. */
const failures: readonly SpeechFailure<SpeechVendorSetup>[] = [
  ...wireFailures,
  wrongKey,
  of(400, "invalid_model", "1500", "invalid_request"),
  of(400, "invalid_request_error", "1000", "invalid_request"),
  refused("nothing but a detail", "credentials", 401, { detail: secretWords }),
  of(402, "payment_required", "1600", "credentials"),
  of(403, "tier_not_allowed", "1910", "credentials"),
  of(403, "moderation", "1911", "content_policy"),
  refused("a message alone", "content_policy", 403, { message: secretWords }),
  of(404, "invalid_voice", "1902", "invalid_request"),
  refused("a field that it does not take", "invalid_request", 422, mistralFault("speed", secretWords)),
  of(429, "rate_limited", "1300", "overloaded"),
  of(500, "internal_server_error", "3000", "upstream"),
  refused("a page", "upstream", 502, { html: true }),
  of(503, "service_unavailable", "3505", "overloaded"),
  of(504, "timeout", "3804", "timeout"),
  {
    name: "an unknown voice",
    kind: "invalid_request",
    status: 404,
    provoke: ({ call }) => ({ call: { ...call, voice: "nobody" } }),
  },
  speechFailure("an error in place of audio", "upstream", { kind: "audio", errorAfterBytes: 0 }),
  speechFailure("an end without audio", "network", { kind: "audio", totalBytes: 0, omitDone: true }),
];

describeSpeechProvider("Mistral", () => createSpeechSetup(vendor), failures);

describe("Mistral's speech", () => {
  let given: Awaited<ReturnType<typeof createSpeechSetup>>;
  beforeAll(async () => {
    given = await createSpeechSetup(vendor);
  });
  afterAll(async () => await given?.close());
  const ask = async (behaviour: Partial<AudioBehaviour> = {}, changes: Partial<SpeechCall> = {}) => {
    const { adapter, call, connection, upstream } = given;
    upstream.next({ kind: "audio", totalBytes: 4044, chunkBytes: 1000, ...behaviour });
    return await adapter.synthesize({ ...call, ...changes }, attempt(connection).context);
  };
  const sent = () => given.upstream.requests.at(-1)?.json;
  const asked = {
    model: "voxtral-mini-tts-3-0",
    input: "A sentence nobody else may read.",
    voice_id: "gb_jane_neutral",
    stream: true,
  };

  test("asks for samples as wav and hands them on as pcm, at the rate that their header names", async () => {
    const answer = await ask({}, { sampleRateHz: 16_000 });
    expect(answer).toMatchObject({ format: "pcm", sampleRateHz: 24_000, channels: 1 });
    const audio = Buffer.concat(await Array.fromAsync(answer.audio));
    expect(audio.equals(firstBytes(createAudioSource("pcm"), 4000))).toBe(true);
    expect(sent()).toEqual({ ...asked, response_format: "wav" });
  });

  test("sends nothing of a speed, and instructions where the endpoint takes them", async () => {
    await Array.fromAsync((await ask({}, { format: "mp3", speed: 1.5, instructions: "Calm." })).audio);
    expect(sent()).toEqual({ ...asked, response_format: "mp3", instruction: "Calm." });
  });

  test("sends options, which replace nothing that is ours", async () => {
    const hostile = { model: "x", input: "x", voice_id: "x", response_format: "pcm", stream: false };
    await Array.fromAsync((await ask({}, { options: { ...hostile, expressiveness: 2 } })).audio);
    expect(sent()).toEqual({ ...asked, response_format: "wav", expressiveness: 2 });
  });

  test.each<[string, object | null | undefined, object | undefined]>([
    ["the usual", undefined, { prompt: 12, completion: 80, audioCompletion: 80 }],
    ["none", null, undefined],
    ["a part of it", { prompt_tokens: 9, completion_tokens: null }, { prompt: 9, completion: 0 }],
    ["what are no numbers", { prompt_tokens: "9" }, { prompt: Number.NaN }],
  ])("hands its report on as it is: %s", async (_, usage, tokens) => {
    const answer = await ask(usage === undefined ? {} : { usage });
    await Array.fromAsync(answer.audio);
    if (tokens === undefined) expect(answer.report()?.tokens).toBeUndefined();
    else expect(answer.report()?.tokens).toMatchObject(tokens);
  });

  test("breaks with an error amid the audio", async () => {
    const broken = ask({ errorAfterBytes: 2000 }).then(({ audio }) => Array.fromAsync(audio));
    await expect(broken).rejects.toMatchObject({ kind: "upstream" });
  });

  testEventsEnd(() => given, ["wav", "mp3"]);
});
