import { elevenLabsError, startElevenLabsUpstream } from "../../test/upstreams/elevenlabs.ts";
import { describeRawSpeech, type VendorError } from "../speech-upstream.suite.ts";
import { elevenlabs } from "./index.ts";

const body = (type: string, code: string) => (message: string) => elevenLabsError(type, code, message);
/** As the API answered before it had types and codes, and as some of it answers still. */
const legacy = (status: string) => (message: string) => ({ detail: { status, message } });

/** From the vendor's page on errors, its help page on 400 and 401, and answers seen. */
const errors: readonly VendorError[] = [
  ["invalid_api_key", 401, body("authentication_error", "invalid_api_key"), "credentials"],
  ["invalid_api_key, legacy", 401, legacy("invalid_api_key"), "credentials"],
  ["missing_permissions", 401, legacy("missing_permissions"), "credentials"],
  ["quota_exceeded", 401, legacy("quota_exceeded"), "credentials"],
  ["quota_exceeded as a bad request", 400, legacy("quota_exceeded"), "credentials"],
  ["detected_unusual_activity", 401, legacy("detected_unusual_activity"), "credentials"],
  ["paid_plan_required", 402, body("payment_required", "paid_plan_required"), "credentials"],
  ["content_against_policy", 403, legacy("content_against_policy"), "content_policy"],
  ["voice_not_found", 404, legacy("voice_not_found"), "invalid_request"],
  ["max_character_limit_exceeded", 400, legacy("max_character_limit_exceeded"), "invalid_request"],
  ["max_character_limit_exceeded", 401, legacy("max_character_limit_exceeded"), "invalid_request"],
  [
    "a body of another shape",
    422,
    (msg) => ({ detail: [{ type: "missing", loc: ["body"], msg }] }),
    "invalid_request",
  ],
  ["too_many_concurrent_requests", 429, legacy("too_many_concurrent_requests"), "overloaded"],
  ["system_busy", 429, body("rate_limit_error", "system_busy"), "overloaded"],
  ["internal_server_error", 500, (message) => ({ status: "internal_server_error", message }), "upstream"],
];

describeRawSpeech(
  "ElevenLabs",
  {
    manifest: elevenlabs,
    startUpstream: startElevenLabsUpstream,
    call: {
      upstreamModel: "eleven_flash_v2_5",
      voice: "JBFqnCBsd6RMkjVDRZzb",
      speed: 1.1,
      settings: { credits_per_character: 0.5 },
    },
    formats: ["mp3", "pcm"],
    mp3RateHz: 44_100,
    errors,
    requests: [
      [
        {
          input: "Hi.",
          speed: 1,
          format: "mp3",
          upstreamModel: "eleven_v3",
          options: { voice_settings: { speed: 0.7 } },
        },
        {
          path: "/v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb/stream?output_format=mp3_44100_128",
          json: { text: "Hi.", model_id: "eleven_v3" },
          headers: { "xi-api-key": "sk-the-right-one", "content-type": "application/json" },
        },
      ],
      [
        { input: "Hi.", speed: 0.7, format: "pcm", options: { seed: 7, voice_settings: { stability: 1 } } },
        {
          path: "/v1/text-to-speech/JBFqnCBsd6RMkjVDRZzb/stream?output_format=pcm_24000",
          json: {
            text: "Hi.",
            model_id: "eleven_flash_v2_5",
            seed: 7,
            voice_settings: { stability: 1, speed: 0.7 },
          },
          headers: { "xi-api-key": "sk-the-right-one" },
        },
      ],
    ],
    reports: [
      [{}, { characters: 32 }],
      [{ "character-cost": undefined }, undefined],
      [{ "character-cost": "" }, { characters: Number.NaN }],
      [{ "character-cost": "many" }, { characters: Number.NaN }],
      [{ "character-cost": "-3" }, { characters: -6 }],
    ],
    hostileOptions: { text: "x", model_id: "eleven_v3", voice_settings: { speed: 0.7 } },
  },
  [
    {
      name: "an unknown voice",
      kind: "invalid_request",
      status: 404,
      provoke: ({ call }) => ({ call: { ...call, voice: "no/such?voice" } }),
    },
    {
      name: "a voice that would be a step of the path",
      kind: "invalid_request",
      provoke: ({ call }) => ({ call: { ...call, voice: ".." } }),
    },
  ],
);
