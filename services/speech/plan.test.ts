import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  ProviderPreferencesSchema,
  ProviderSort,
} from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { SpeechCapabilities, SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import { ProviderError } from "../../providers/contract.ts";
import { EndpointHealth } from "../../providers/routing/endpoint-health.ts";
import { catalogOf, speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { ManualClock } from "../../test/fakes/manual-clock.ts";
import { candidatesFor, mostCostOf, planCall } from "./plan.ts";
import type { SpeechRequest } from "./speech-request.ts";

type Preferences = MessageInitShape<typeof ProviderPreferencesSchema>;
type RequestChanges = Partial<Omit<SpeechRequest, "preferences">> & { preferences?: Preferences };

function request({ preferences, ...changes }: RequestChanges = {}): SpeechRequest {
  return {
    input: "Hello.",
    model: "acme/voice",
    voice: undefined,
    format: "mp3",
    speed: undefined,
    preferences: preferences === undefined ? undefined : create(ProviderPreferencesSchema, preferences),
    ...changes,
  };
}

const newHealth = () => new EndpointHealth({ clock: new ManualClock() });

/** The slugs of the candidates, best first. */
function slugs(
  endpoints: readonly SpeechEndpoint[],
  changes: RequestChanges = {},
  health = newHealth(),
): readonly string[] {
  const candidates = candidatesFor(
    request(changes),
    { catalog: catalogOf(...endpoints), health, providers: { operatorKeys: () => 1 }, random: () => 0.5 },
    new Map(),
  );
  return candidates.map(({ providerSlug }) => providerSlug);
}

function refusal(endpoints: readonly SpeechEndpoint[], changes: RequestChanges = {}, health = newHealth()) {
  try {
    slugs(endpoints, changes, health);
  } catch (thrown) {
    if (thrown instanceof DomainError) return thrown;
    throw thrown;
  }
  throw new Error("there are candidates");
}

const oneWith = (speech: Partial<SpeechCapabilities>) => [speechEndpoint({ speech })];
const voices = [{ id: "anna", name: "", language: "" }];
const voiceAliases = new Map([["alloy", "anna"]]);

describe("the candidates for a request", () => {
  const acme = speechEndpoint();
  const zenith = speechEndpoint({ providerSlug: "zenith" });

  test("are the endpoints of its model, in the catalogue's order", () => {
    const other = speechEndpoint({ providerSlug: "other", model: "other/voice" });
    expect(slugs([zenith, other, acme])).toEqual(["zenith", "acme"]);
  });

  test("are none for a model that is not there", () => {
    const error = refusal([acme], { model: "acme/other" });
    expect(error.reason).toBe(ErrorReason.MODEL_UNKNOWN);
    expect(error.issues).toEqual([{ path: "model", message: "is not a speech model of this gateway" }]);
  });

  test("obey the preferences", () => {
    const endpoints = [acme, zenith];
    expect(slugs(endpoints, { preferences: { order: ["zenith"] } })).toEqual(["zenith", "acme"]);
    expect(slugs(endpoints, { preferences: { only: ["zenith"] } })).toEqual(["zenith"]);
    expect(slugs(endpoints, { preferences: { ignore: ["acme"] } })).toEqual(["zenith"]);
    expect(slugs(endpoints, { preferences: { allowFallbacks: false } })).toEqual(["acme"]);
    expect(refusal(endpoints, { preferences: { only: ["nobody"] } }).reason).toBe(
      ErrorReason.NO_ENDPOINT_LEFT,
    );
  });

  test("are ordered by what this very input would cost", () => {
    const mostPerInputCharacter = undefined;
    const perRequest = speechEndpoint({
      providerSlug: "flat",
      prices: [{ billable: "request", nanoUsdPerMillion: 5_000_000n, mostPerInputCharacter }],
    });
    const perCharacter = speechEndpoint({
      prices: [{ billable: "input_character", nanoUsdPerMillion: 1_000_000n, mostPerInputCharacter }],
    });
    const sorted = (input: string) =>
      slugs([perRequest, perCharacter], { input, preferences: { sort: ProviderSort.PRICE } });
    expect(sorted("😀".repeat(4))).toEqual(["acme", "flat"]);
    expect(sorted("😀".repeat(6))).toEqual(["flat", "acme"]);
  });

  test("leave out an endpoint that rests, and are none when all do", async () => {
    const health = new EndpointHealth({
      clock: new ManualClock(),
      breaker: { failuresToOpen: 1, openMs: 60_000 },
    });
    await health.recordFailure(new ProviderError("upstream", "failed"), acme.id);
    expect(slugs([acme, zenith], {}, health)).toEqual(["zenith"]);
    const error = refusal([acme], {}, health);
    expect(error.reason).toBe(ErrorReason.PROVIDER_OVERLOADED);
    expect(error.retryAfterMs).toBeGreaterThan(0);
  });

  test("need no voice where it is optional, and are asked for none", () => {
    const endpoint = speechEndpoint({ speech: { voices, defaultVoice: undefined, voiceOptional: true } });
    expect(slugs([endpoint])).toEqual(["acme"]);
    expect(planCall(endpoint, request()).call.voice).toBe("");
    const strict = oneWith({ voices, defaultVoice: undefined });
    expect(refusal(strict).issues).toEqual([{ path: "voice", message: "is required by this model" }]);
  });

  test("take an account's own voices with its own key alone", () => {
    const keyOf = (ownVoices: boolean, voice: string) => {
      const endpoint = speechEndpoint({ speech: { voices, voiceAliases, ownVoices } });
      const providers = { operatorKeys: () => 1 };
      const sources = { catalog: catalogOf(endpoint), health: newHealth(), providers, random: () => 0.5 };
      const found = candidatesFor(request({ voice }), sources, new Map([["acme", "sk-own"]]));
      return found.map(({ ownKey }) => ownKey);
    };
    expect(keyOf(true, "a-clone")).toEqual(["sk-own"]);
    expect(keyOf(true, "alloy")).toEqual(["sk-own", undefined]);
    expect(() => keyOf(false, "a-clone")).toThrow(DomainError);
    expect(refusal(oneWith({ voices, ownVoices: true }), { voice: "a-clone" }).issues).toEqual([
      { path: "voice", message: "is not a voice of this model" },
    ]);
  });

  test("leave out an endpoint that can't do it", () => {
    const strict = speechEndpoint({ providerSlug: "strict", speech: { voices, maxInputCharacters: 3 } });
    expect(slugs([strict, acme])).toEqual(["acme"]);
  });

  test.for<[string, Partial<SpeechCapabilities>, RequestChanges]>([
    ["a voice of the model", { voices }, { voice: "anna" }],
    ["a voice by an alias", { voices, voiceAliases }, { voice: "alloy" }],
    ["the default voice", { voices, defaultVoice: "anna" }, {}],
    ["any voice where the catalogue names none", { voices: [], defaultVoice: undefined }, { voice: "zoe" }],
    ["a named voice where there is no default", { voices, defaultVoice: undefined }, { voice: "anna" }],
    ["the longest input", { maxInputCharacters: 5 }, { input: "😀".repeat(5) }],
    ["mp3 made from pcm", { formats: ["pcm"] }, { format: "mp3" }],
    ["pcm as it is", { formats: ["pcm"] }, { format: "pcm" }],
    ["a speed that the endpoint has not", { speed: undefined }, { speed: 2 }],
  ])("may be asked for %s", ([, speech, changes]) => {
    expect(slugs(oneWith(speech), changes)).toEqual(["acme"]);
  });

  test.for<[string, Partial<SpeechCapabilities>, RequestChanges, string, string]>([
    ["another endpoint's alias", { voices }, { voice: "alloy" }, "voice", "is not a voice of this model"],
    [
      "an unknown voice beside aliases",
      { voices, voiceAliases },
      { voice: "echo" },
      "voice",
      "is not a voice of this model",
    ],
    ["an unknown voice", { voices }, { voice: "zoe" }, "voice", "is not a voice of this model"],
    ["a voice in other letters", { voices }, { voice: "Anna" }, "voice", "is not a voice of this model"],
    [
      "no voice where there is no default",
      { defaultVoice: undefined },
      {},
      "voice",
      "is required by this model",
    ],
    [
      "an input that is too long",
      { maxInputCharacters: 5 },
      { input: "😀".repeat(6) },
      "input",
      "must be at most 5 characters for this model",
    ],
    [
      "pcm from mp3",
      { formats: ["mp3"] },
      { format: "pcm" },
      "response_format",
      "is not offered by this model",
    ],
  ])("are not asked for %s", ([, speech, changes, path, message]) => {
    const error = refusal(oneWith(speech), changes);
    expect(error.reason).toBe(ErrorReason.UNSUPPORTED_PARAMETER);
    expect(error.issues).toEqual([{ path, message }]);
  });
});

describe("the call to an endpoint", () => {
  test("has the request in the endpoint's own terms", () => {
    const endpoint = speechEndpoint({ settings: { stream: "sse" } });
    expect(planCall(endpoint, request({ voice: "zoe", format: "pcm", speed: 1.25 }))).toEqual({
      call: {
        upstreamModel: "voice-1",
        input: "Hello.",
        voice: "zoe",
        format: "pcm",
        sampleRateHz: 24_000,
        channels: 1,
        speed: 1.25,
        options: {},
        settings: { stream: "sse" },
      },
      transcode: false,
      ignoredParameters: [],
    });
  });

  test("has the defaults of the endpoint", () => {
    expect(planCall(speechEndpoint(), request()).call).toMatchObject({
      voice: "anna",
      speed: 1,
      format: "mp3",
    });
  });

  test.for([
    [undefined, 1],
    [0.25, 0.5],
    [0.5, 0.5],
    [1.75, 1.75],
    [2, 2],
    [4, 2],
  ] as const)("clamps the speed %s to %d", ([speed, clamped]) => {
    const { call, ignoredParameters } = planCall(speechEndpoint(), request({ speed }));
    expect([call.speed, ignoredParameters]).toEqual([clamped, []]);
  });

  test("stays in the endpoint's range where nobody chose a speed", () => {
    const slow = speechEndpoint({ speech: { speed: { min: 0.25, max: 0.8 } } });
    expect(planCall(slow, request()).call.speed).toBe(0.8);
  });

  test("warns of a speed that has no effect, also when it is the usual one", () => {
    const fixed = speechEndpoint({ speech: { speed: undefined } });
    for (const speed of [1, 3]) {
      const planned = planCall(fixed, request({ speed }));
      expect([planned.call.speed, planned.ignoredParameters]).toEqual([1, ["speed"]]);
    }
    expect(planCall(fixed, request()).ignoredParameters).toEqual([]);
  });

  test("passes on what the catalogue allows, of this provider's options alone, and names the rest", () => {
    const endpoint = speechEndpoint({ passthrough: ["tone", "seed"], speech: { speed: undefined } });
    const options = {
      acme: { tone: { mood: "calm" }, seed: null, pitch: 2, voice: "zoe" },
      zenith: { tone: "loud", secret: "s" },
    };
    const planned = planCall(endpoint, request({ speed: 2, preferences: { options } }));
    expect(planned.call.options).toEqual({ tone: { mood: "calm" }, seed: null });
    expect(planned.call.voice).toBe("anna");
    expect(planned.ignoredParameters).toEqual([
      "speed",
      "provider.options.acme.pitch",
      "provider.options.acme.voice",
    ]);
  });

  test("has instructions where the endpoint takes them, and names them where it does not", () => {
    const instructions = "Softly.";
    const taken = planCall(speechEndpoint({ speech: { instructions: true } }), request({ instructions }));
    expect([taken.call.instructions, taken.ignoredParameters]).toEqual([instructions, []]);
    const ignored = planCall(speechEndpoint(), request({ instructions }));
    expect([ignored.call.instructions, ignored.ignoredParameters]).toEqual([undefined, ["instructions"]]);
  });

  test("takes a hostile name of an option for what it is", () => {
    const acme = JSON.parse('{"__proto__": {"tone": "loud"}, "constructor": 1}');
    const planned = planCall(
      speechEndpoint({ passthrough: ["tone"] }),
      request({ preferences: { options: { acme } } }),
    );
    expect(planned.call.options).toEqual({});
    expect("tone" in planned.call.options).toBe(false);
    expect(planned.ignoredParameters).toContain("provider.options.acme.constructor");
  });

  test.for([
    ["mp3", ["mp3", "pcm"], "mp3", false],
    ["pcm", ["mp3", "pcm"], "pcm", false],
    ["mp3", ["mp3"], "mp3", false],
    ["mp3", ["pcm"], "pcm", true],
    ["pcm", ["pcm"], "pcm", false],
  ] as const)(
    "for %s from an endpoint that gives %j asks for %s; transcoded: %s",
    ([format, formats, asked, transcode]) => {
      const planned = planCall(speechEndpoint({ speech: { formats } }), request({ format }));
      expect([planned.call.format, planned.transcode]).toEqual([asked, transcode]);
    },
  );
});

describe("the most that a request can cost", () => {
  const million = 1_000_000n;
  const prices = [
    { billable: "input_text_token", nanoUsdPerMillion: million, mostPerInputCharacter: 4n },
    { billable: "output_audio_token", nanoUsdPerMillion: 10n * million, mostPerInputCharacter: 8n },
  ] as const;
  const endpoint = speechEndpoint({ prices, passthrough: ["tone"], speech: { instructions: true } });
  const plain = mostCostOf(endpoint, request({ input: "Hello." }));

  test("has all text in it that the upstream reads", () => {
    expect(plain).toBe(6n * 4n + 6n * 8n * 10n);
    expect(mostCostOf(endpoint, request({ input: "Hello.", instructions: "x".repeat(4096) })) - plain).toBe(
      4n * 4096n,
    );
    const tone = { mood: "calm", "how long": ["it", { is: "😀" }], loud: 3, no: null };
    const texts = ["mood", "calm", "how long", "it", "is", "😀", "loud", "no"];
    const characters = texts.reduce((sum, text) => sum + [...text].length, 0);
    const instructed = request({
      input: "Hello.",
      preferences: { options: { acme: { tone }, zenith: { tone: "x" } } },
    });
    // "loud" and "no" are names; numbers and null are no text. Lists have the names of their places.
    expect(mostCostOf(endpoint, instructed) - plain).toBe(4n * BigInt(characters));
  });

  test("has nothing in it that the upstream is not sent", () => {
    const deaf = speechEndpoint({ prices });
    const options = { acme: { tone: "calm" } };
    const instructed = request({ input: "Hello.", instructions: "Softly.", preferences: { options } });
    expect(mostCostOf(deaf, instructed)).toBe(plain);
  });
});
