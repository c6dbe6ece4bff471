import { grokCodes, startGrokSpeech } from "../../test/upstreams/xai.ts";
import { describeRawSpeech, type VendorError } from "../speech-upstream.suite.ts";
import { xai } from "./index.ts";

const coded = (code: string, text?: string) => (message: string) => ({ code, error: text ?? message });

/** Speech has errors without a code; what comes before it has one. */
const errors: readonly VendorError[] = [
  ["a refusal", 400, (error) => ({ error }), "invalid_request"],
  ["a wrong key", 400, coded(grokCodes.argument, "Incorrect API key provided: xa***."), "credentials"],
  ["no credentials", 401, coded(grokCodes.unauthenticated), "credentials"],
  ["no permission", 403, coded(grokCodes.permission), "credentials"],
  [
    "a new team",
    403,
    coded(grokCodes.permission, "Your newly created team doesn't have any credits yet."),
    "credentials",
  ],
  [
    "a refused text",
    403,
    coded(grokCodes.permission, "Content violates usage guidelines."),
    "content_policy",
  ],
  ["no such thing", 404, coded(grokCodes.missing), "invalid_request"],
  [
    "what can't be read",
    422,
    () => "Failed to deserialize the JSON body into the target type",
    "invalid_request",
  ],
  ["a limit", 429, coded(grokCodes.exhausted), "overloaded"],
  [
    "no balance",
    429,
    coded(grokCodes.exhausted, "Your team has either used all available credits or reached its limit."),
    "credentials",
  ],
  ["a broken upstream", 500, coded(grokCodes.unavailable), "upstream"],
  ["a page", 502, () => "<html></html>", "upstream"],
  ["high load", 503, coded(grokCodes.unavailable), "overloaded"],
];

const usual = { text: "Hi.", voice_id: "eve", language: "auto" };
const headers = { authorization: "Bearer sk-the-right-one", "content-type": "application/json" };

describeRawSpeech(
  "xAI's speech",
  {
    manifest: xai,
    startUpstream: startGrokSpeech,
    call: { upstreamModel: "grok-voice-tts-1.0", voice: "eve" },
    formats: ["mp3", "pcm"],
    errors,
    requests: [
      [
        { input: "Hi.", format: "mp3" },
        {
          path: "/v1/tts",
          json: { ...usual, output_format: { codec: "mp3", sample_rate: 24_000 } },
          headers,
        },
      ],
      [
        { input: "Hi.", format: "pcm", speed: 1.5, voice: "leo", options: { language: "de" } },
        {
          path: "/v1/tts",
          json: {
            ...usual,
            voice_id: "leo",
            language: "de",
            speed: 1.5,
            output_format: { codec: "pcm", sample_rate: 24_000 },
          },
          headers,
        },
      ],
    ],
    reports: [[{ "x-trace-id": "a1b2" }, undefined]],
    hostileOptions: {
      text: "x",
      voice_id: "rex",
      speed: 0.7,
      output_format: { codec: "wav", sample_rate: 8000 },
      with_timestamps: true,
    },
  },
  [
    {
      name: "a voice that is not there",
      kind: "invalid_request",
      status: 400,
      provoke: ({ call }) => ({ call: { ...call, voice: "nobody" } }),
    },
  ],
);
