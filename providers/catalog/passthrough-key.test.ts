import { expect, test } from "vitest";
import { mayPassThrough } from "./check.ts";

test.each(["instructions", "language", "stability", "seed", "style_preset", "textNormalization"])(
  "%s may be left to callers",
  (key) => expect(mayPassThrough(key)).toBe(true),
);

test.each([
  ...["model", "input", "voice", "response_format", "speed", "stream", "stream_format", "n", "size", "user"],
  ...["responseFormat", "Response-Format", "MODEL", "voice_id", "voiceId", "sampleRateHertz", "num_images"],
  ...["api_key", "api-key", "Authorization", "token", "headers"],
  ...[
    "webhook",
    "webhook_url",
    "webhookUrl",
    "callback",
    "callback_url",
    "callBackURL",
    "notify_hook",
    "upload-url",
  ],
  ...["", "__", "-"],
])("%j may not", (key) => expect(mayPassThrough(key)).toBe(false));
