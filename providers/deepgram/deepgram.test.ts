import { deepgramError, startDeepgramUpstream } from "../../test/upstreams/deepgram.ts";
import { describeRawSpeech, type VendorError } from "../speech-upstream.suite.ts";
import { deepgram } from "./index.ts";

const body = (code: string) => (message: string) => deepgramError(code, message);

/** The vendor's page on errors, general ones and those of speech. */
const errors: readonly VendorError[] = [
  ["INVALID_AUTH", 401, body("INVALID_AUTH"), "credentials"],
  ["INSUFFICIENT_PERMISSIONS", 401, body("INSUFFICIENT_PERMISSIONS"), "credentials"],
  ["INSUFFICIENT_PERMISSIONS", 403, body("INSUFFICIENT_PERMISSIONS"), "credentials"],
  ["ASR_PAYMENT_REQUIRED", 402, body("ASR_PAYMENT_REQUIRED"), "credentials"],
  ["no such model", 400, body("Bad Request"), "invalid_request"],
  ["INVALID_QUERY_PARAMETER", 400, body("INVALID_QUERY_PARAMETER"), "invalid_request"],
  ["PAYLOAD_ERROR", 400, body("PAYLOAD_ERROR"), "invalid_request"],
  [
    "INVALID_JSON",
    400,
    (message) => ({ category: "INVALID_JSON", message, details: message }),
    "invalid_request",
  ],
  ["Payload Too Large", 413, body("Payload Too Large"), "invalid_request"],
  ["UNSUPPORTED_MEDIA_TYPE", 415, body("UNSUPPORTED_MEDIA_TYPE"), "invalid_request"],
  ["UNPROCESSABLE_ENTITY", 422, body("UNPROCESSABLE_ENTITY"), "upstream"],
  ["Too Many Requests", 429, body("Too Many Requests"), "overloaded"],
  ["nothing but a text", 500, (message) => message, "upstream"],
  ["Service Unavailable", 503, (err_msg) => ({ error_code: "Service Unavailable", err_msg }), "overloaded"],
  ["Gateway Timeout", 504, (message) => message, "timeout"],
];

describeRawSpeech(
  "Deepgram",
  {
    manifest: deepgram,
    startUpstream: startDeepgramUpstream,
    call: { upstreamModel: "aura-2", voice: "thalia-en" },
    formats: ["mp3", "pcm"],
    mp3RateHz: 22_050,
    errors,
    requests: [
      [
        { input: "Hallo.", format: "mp3", speed: 0.7, voice: "viktoria-de" },
        {
          path: "/v1/speak?model=aura-2-viktoria-de&encoding=mp3",
          json: { text: "Hallo." },
          headers: { authorization: "Token sk-the-right-one" },
        },
      ],
      [
        { input: "Hi.", format: "mp3", speed: 0.7 },
        {
          path: "/v1/speak?model=aura-2-thalia-en&encoding=mp3&speed=0.7",
          json: { text: "Hi." },
          headers: { authorization: "Token sk-the-right-one", "content-type": "application/json" },
        },
      ],
      [
        { input: "Hi.", format: "pcm", upstreamModel: "aura", voice: "asteria-en" },
        {
          path: "/v1/speak?model=aura-asteria-en&encoding=linear16&container=none&sample_rate=24000",
          json: { text: "Hi." },
          headers: { authorization: "Token sk-the-right-one" },
        },
      ],
    ],
    reports: [
      [{}, { characters: 32 }],
      [{ "dg-char-count": undefined, "x-dg-characters": "31" }, { characters: 31 }],
      [{ "dg-char-count": undefined }, undefined],
      [{ "dg-char-count": "" }, { characters: Number.NaN }],
      [{ "dg-char-count": "-1" }, { characters: -1 }],
    ],
    hostileOptions: { text: "x", model: "x", encoding: "x", callback: "http://localhost/", url: "x" },
  },
  [
    {
      name: "a voice that would be more than one parameter",
      kind: "invalid_request",
      status: 400,
      provoke: ({ call }) => ({ call: { ...call, voice: "thalia-en&callback=http://localhost/" } }),
    },
  ],
);
