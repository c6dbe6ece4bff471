import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  AudioFormat,
  type SynthesizeRequestSchema,
  type SynthesizeResponse,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import { consumeStream } from "../../lib/rpc/client.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  inProcess,
  overSocket,
  type Reach,
  type VendorOptions,
  type VendorScene,
  withVendor,
} from "../../test/support/services/vendor-scene.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createAudioSource, firstBytes } from "../../test/upstreams/stand-in/audio-source.ts";
import { createSpeechService } from "./speech-service.ts";

const longMs = 60_000;
const model = "openai/tts-1";

type Synthesis = MessageInitShape<typeof SynthesizeRequestSchema>;

/** Runs `body` against the service with its own providers and catalogue; the vendor is a stand-in. */
function withService(
  reach: Reach,
  body: (scene: VendorScene<typeof SpeechService>) => Promise<void>,
  { openAi = true } = {},
): Promise<void> {
  const limits = { firstByteTimeoutMs: longMs, idleTimeoutMs: longMs, timeoutMs: longMs };
  const start = (options: VendorOptions) => createSpeechService({ ...options, limits });
  return withVendor({ desc: SpeechService, start, isOn: openAi }, reach, body);
}

const request = (input: string, fields: Synthesis = {}): Synthesis => ({
  model,
  voice: "alloy",
  input,
  ...fields,
});

function audioOf(frames: readonly SynthesizeResponse[]): Buffer {
  return Buffer.concat(frames.flatMap(({ frame }) => (frame.case === "audio" ? [frame.value] : [])));
}

/** All that came before the stream failed, and how it failed. */
async function collectFailure(stream: AsyncIterable<SynthesizeResponse>) {
  const frames: SynthesizeResponse[] = [];
  try {
    for await (const frame of stream) frames.push(frame);
  } catch (thrown) {
    if (thrown instanceof DomainError) return { frames, error: thrown };
    throw thrown;
  }
  throw new Error("the stream ended without a failure");
}

function generationOf(frames: readonly SynthesizeResponse[]): string | undefined {
  const frame = frames[0]?.frame;
  return frame?.case === "started" ? frame.value.generationId : undefined;
}

describe.for([
  ["in the process", inProcess],
  ["over a socket", overSocket()],
] as const)("the speech service %s", ([, reach]) => {
  test.for([
    [AudioFormat.MP3, "mp3"],
    [AudioFormat.PCM, "pcm"],
  ] as const)(
    "answers with a start, the provider's audio byte for byte and an end: format %i",
    ([responseFormat, format]) =>
      withService(reach, async ({ client, upstream }) => {
        const fields = { responseFormat, speed: 1.5, provider: { options: { openai: { tone: "calm" } } } };
        const input = "Hello 😀 [[audio=100000 chunk=3000]]";
        const frames = await Array.fromAsync(client.synthesize(request(input, fields)));
        expect(frames[0]?.frame).toMatchObject({
          case: "started",
          value: {
            generationId: expect.stringMatching(/^gen-tts-/),
            format: responseFormat,
            sampleRateHz: 24_000,
            channels: 1,
            endpoint: { model, providerSlug: "openai", providerName: "OpenAI" },
            ignoredParameters: ["provider.options.openai.tone"],
          },
        });
        expect(frames.slice(1, -1).every(({ frame }) => frame.case === "audio")).toBe(true);
        expect(audioOf(frames).equals(firstBytes(createAudioSource(format), 100_000))).toBe(true);
        const inputCharacters = BigInt([...input].length);
        expect(frames.at(-1)?.frame).toMatchObject({ case: "finished", value: { inputCharacters } });
        expect(upstream.requests[0]?.json).toMatchObject({
          input,
          voice: "alloy",
          speed: 1.5,
          response_format: format,
        });
      }),
  );

  test("names the faults of a request that breaks the contract", () =>
    withService(reach, async ({ client, upstream }) => {
      const { error } = await collectFailure(client.synthesize({ voice: "", speed: 9 }));
      expect(error.reason).toBe(ErrorReason.INVALID_BODY);
      expect(error.issues.map(({ path }) => path)).toEqual(["input", "model", "voice", "speed"]);
      expect(upstream.requests).toEqual([]);
    }));

  test.for<[string, Synthesis, ErrorReason]>([
    ["an unknown model", { model: "openai/nobody" }, ErrorReason.MODEL_UNKNOWN],
    ["an unknown voice", { voice: "nobody" }, ErrorReason.UNSUPPORTED_PARAMETER],
    ["no provider left", { provider: { ignore: ["openai"] } }, ErrorReason.NO_ENDPOINT_LEFT],
  ])("refuses %s without asking the provider", ([, fields, reason]) =>
    withService(reach, async ({ client, upstream }) => {
      const { frames, error } = await collectFailure(client.synthesize(request("Hello.", fields)));
      expect([error.reason, frames, upstream.requests]).toEqual([reason, [], []]);
    }),
  );

  test("reports all about a provider that refuses, but not its words", () =>
    withService(reach, async ({ client, upstream, logged }) => {
      const message = "the vendor's words about a secret";
      upstream.next({ kind: "error", status: 429, message, headers: { "retry-after": "2" } });
      const { frames, error } = await collectFailure(client.synthesize(request("A private text.")));
      expect(frames).toEqual([]);
      expect(error).toMatchObject({
        reason: ErrorReason.PROVIDER_OVERLOADED,
        retryAfterMs: 2_000,
        generationId: expect.stringMatching(/^gen-tts-/),
        attempts: [{ providerName: "OpenAI", providerStatus: 429, reason: ErrorReason.PROVIDER_OVERLOADED }],
      });
      expect(logged.join("")).toContain("attempt failed");
      expect(`${error.message} ${logged.join("")}`).not.toMatch(/vendor's words|private text/);
    }));

  test("breaks off with an error after the audio that came, under the same generation", () =>
    withService(reach, async ({ client }) => {
      const { frames, error } = await collectFailure(client.synthesize(request("Hello [[cut=20000]]")));
      expect(error.reason).toBe(ErrorReason.PROVIDER_FAILED);
      expect(error.attempts).toMatchObject([{ providerName: "OpenAI", reason: ErrorReason.PROVIDER_FAILED }]);
      expect(error.generationId).toBe(generationOf(frames));
      expect(frames.at(-1)?.frame.case).toBe("audio");
      expect(audioOf(frames).equals(firstBytes(createAudioSource("mp3"), audioOf(frames).length))).toBe(true);
    }));

  test("ends the provider's work when the consumer of the stream leaves", () =>
    withService(reach, async ({ client, upstream }) => {
      const open = (signal: AbortSignal) => client.synthesize(request("Hello [[stall=8192]]"), { signal });
      for await (const { frame } of consumeStream(open)) if (frame.case === "audio") break;
      const asked = await upstream.received(1);
      expect(await asked.ended).toBe("closed_by_client");
    }));

  test("ends the provider's work when the caller gives up after usable audio, with nobody reading", () =>
    withService(reach, async ({ client, upstream }) => {
      const caller = new AbortController();
      const { signal } = caller;
      const stream = client.synthesize(request("Hello [[stall=8192]]"), { signal })[Symbol.asyncIterator]();
      await stream.next();
      const asked = await upstream.received(1);
      expect(asked.fate).toBe("open");
      caller.abort();
      expect(await asked.ended).toBe("closed_by_client");
    }));

  test("goes on until there is usable audio when the caller gives up before there is any, and charges it", () =>
    withService(reach, async ({ client, upstream, logged, paid }) => {
      const gate = Promise.withResolvers<void>();
      upstream.next({ kind: "audio", beforeHeaders: () => gate.promise, stallAfterBytes: 8192 });
      const caller = new AbortController();
      const failed = collectFailure(client.synthesize(request("Hello."), { signal: caller.signal }));
      const asked = await upstream.received(1);
      caller.abort();
      expect((await failed).error.reason).toBe(ErrorReason.CANCELLED);
      expect(asked.fate).toBe("open");
      gate.resolve();
      expect(await asked.ended).toBe("closed_by_client");
      await waitUntil(() => paid.events.length === 1);
      expect(paid.event()).toMatchObject({
        outcome: Outcome.SUCCEEDED,
        cancelled: true,
        costNanoUsd: 90_000n,
      });
      expect(logged.join("")).not.toContain("attempt failed");
    }));

  test("ends the provider's work at the caller's deadline after usable audio", () =>
    withService(reach, async ({ client, upstream }) => {
      const stream = client.synthesize(request("Hello [[stall=8192]]"), { timeoutMs: 1_000 });
      expect((await collectFailure(stream)).error.reason).toBe(ErrorReason.TIMED_OUT);
      expect(await (await upstream.received(1)).ended).toBe("closed_by_client");
    }));

  test("lists the models of providers that are on", () =>
    withService(reach, async ({ client }) => {
      const { models } = await client.listSpeechModels({});
      expect(models.map(({ id }) => id)).toEqual([
        "local/flite",
        "openai/gpt-4o-mini-tts",
        "openai/tts-1",
        "openai/tts-1-hd",
      ]);
      expect(models.find(({ id }) => id === "openai/gpt-4o-mini-tts")).toMatchObject({
        permaslug: "openai/gpt-4o-mini-tts-2025-12-15",
        defaultVoice: "",
        endpoints: [{ maxInputCharacters: 2_000, allowedPassthroughParameters: ["instructions"] }],
      });
    }));

  test("neither lists nor serves the models of a provider that is off", () =>
    withService(
      reach,
      async ({ client, upstream }) => {
        const { models } = await client.listSpeechModels({});
        expect(models).toMatchObject([{ id: "local/flite", defaultVoice: "slt" }]);
        expect(models[0]?.endpoints).toMatchObject([
          { providerSlug: "local", formats: [AudioFormat.MP3, AudioFormat.PCM], supportsSpeed: true },
        ]);
        const { error } = await collectFailure(client.synthesize(request("Hello.")));
        expect([error.reason, upstream.requests]).toEqual([ErrorReason.MODEL_UNKNOWN, []]);
      },
      { openAi: false },
    ));
});
