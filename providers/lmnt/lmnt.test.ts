import { lmntError, startLmntUpstream } from "../../test/upstreams/lmnt.ts";
import { describeRawSpeech, type VendorError } from "../speech-upstream.suite.ts";
import { lmnt } from "./index.ts";

const body = (type: string) => (message: string) => lmntError(type, message);

/** The envelope that the vendor's client reads, with the types that it names, by status. */
const errors: readonly VendorError[] = [
  ["invalid_request_error", 400, body("invalid_request_error"), "invalid_request"],
  ["a bare text, as before 1.1", 400, (error) => ({ error }), "invalid_request"],
  ["authentication_error", 401, body("authentication_error"), "credentials"],
  ["payment required", 402, body("billing_error"), "credentials"],
  ["permission_error", 403, body("permission_error"), "credentials"],
  ["not_found_error", 404, body("not_found_error"), "invalid_request"],
  ["rate_limit_error", 429, body("rate_limit_error"), "overloaded"],
  ["api_error", 500, body("api_error"), "upstream"],
];

const headers = { "x-api-key": "sk-the-right-one", "lmnt-version": "1.1" };
const own = { model: "blizzard", text: "Hi.", voice: "leah", sample_rate: 24_000 };

describeRawSpeech(
  "LMNT",
  {
    manifest: lmnt,
    startUpstream: startLmntUpstream,
    call: { upstreamModel: "blizzard", voice: "leah" },
    formats: ["mp3", "pcm"],
    errors,
    requests: [
      [
        { input: "Hi.", format: "mp3" },
        { path: "/v1/ai/speech/bytes", json: { ...own, format: "mp3" }, headers },
      ],
      [
        { input: "Hi.", format: "pcm", options: { temperature: 0.3 } },
        {
          path: "/v1/ai/speech/bytes",
          json: { ...own, format: "pcm_s16le", temperature: 0.3 },
          headers,
        },
      ],
    ],
    reports: [[{}, undefined]],
    hostileOptions: { model: "x", text: "x", voice: "x", format: "aac", sample_rate: 1 },
  },
  [
    {
      name: "an unknown voice",
      kind: "invalid_request",
      status: 404,
      provoke: ({ call }) => ({ call: { ...call, voice: "nobody" } }),
    },
  ],
);
