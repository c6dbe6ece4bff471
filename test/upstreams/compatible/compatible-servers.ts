/** The servers of catalog/examples, as their documentation and sources say that they behave. */
import {
  type CompatibleServer,
  type Fields,
  imageOf,
  imagePath,
  type Operation,
  type Refusal,
  sendJson,
  speechOf,
  streamAudio,
  streamEvents,
  streamedWav,
} from "./compatible.ts";

const key = "test-key";
const bearer = { header: "authorization", value: `Bearer ${key}` };

const openAiError = ({ status, message }: Refusal) => ({
  error: { message, type: status === 401 ? "authentication_error" : "invalid_request_error", code: null },
});

/** A field that must be one of a few. */
function oneOf(
  body: Fields,
  field: string,
  allowed: readonly unknown[],
  status: number,
): Refusal | undefined {
  if (allowed.includes(body[field])) return undefined;
  return { status, message: `${field} ${JSON.stringify(body[field])} is not supported` };
}

/** A list at an address of its own. */
function listing(content: unknown): Operation {
  return { check: () => undefined, answer: async (_, answer) => sendJson(answer, content) };
}

const kokoroVoices = ["af_heart", "af_alloy", "am_echo", "bm_fable"];

const kokoroFastApi: CompatibleServer = {
  error: ({ message }) => ({ detail: { error: "invalid_model", message, type: "invalid_request_error" } }),
  operations: {
    "POST /v1/audio/speech": {
      check: (body) =>
        // Unlike others it answers 400 for a model that it does not know.
        oneOf(body, "model", ["kokoro", "tts-1", "tts-1-hd"], 400) ?? oneOf(body, "voice", kokoroVoices, 400),
      answer: ({ response_format }, answer) =>
        response_format === "pcm"
          ? streamAudio(answer, speechOf.pcm, "audio/pcm")
          : streamAudio(answer, speechOf.mp3, "audio/mpeg"),
    },
    "GET /v1/audio/voices": listing({ voices: kokoroVoices.map((id) => ({ id, name: id })) }),
  },
};

const speaches: CompatibleServer = {
  key: bearer,
  keyIsOptional: true,
  error: ({ message }) => ({ detail: [{ type: "value_error", loc: ["body"], msg: message }] }),
  operations: {
    "POST /v1/audio/speech": {
      check: (body) =>
        oneOf(
          body,
          "model",
          ["speaches-ai/Kokoro-82M-v1.0-ONNX", "speaches-ai/piper-en_US-amy-medium"],
          422,
        ) ?? oneOf(body, "response_format", ["pcm", "mp3", "wav", "flac"], 422),
      answer: ({ stream_format }, answer) =>
        stream_format === "sse"
          ? streamEvents(answer, speechOf.pcm, (audio) => ({ type: "speech.audio.delta", audio }), [
              JSON.stringify({
                type: "speech.audio.done",
                token_usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 },
              }),
            ])
          : streamAudio(answer, speechOf.pcm, "audio/pcm"),
    },
    "GET /v1/audio/voices": listing({ object: "list", voices: ["af_heart", "af_sky"] }),
  },
};

const vllmOmni: CompatibleServer = {
  key: bearer,
  keyIsOptional: true,
  error: ({ message }) => ({ detail: message }),
  operations: {
    "POST /v1/audio/speech": {
      check: (body) =>
        oneOf(body, "model", ["Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"], 404) ??
        oneOf(body, "voice", [undefined, "vivian", "ryan"], 400) ??
        // As it speaks it answers with raw samples, and only where it is asked to.
        oneOf(body, "stream_format", ["audio"], 400),
      answer: (_, answer) =>
        streamAudio(answer, speechOf.pcm, "audio/pcm;rate=24000", {
          "x-vllm-omni-input-tokens": "11",
          "x-vllm-omni-output-tokens": "47",
        }),
    },
    "GET /v1/audio/voices": listing({ voices: ["vivian", "ryan"] }),
    "POST /v1/images/generations": {
      check: (body) => oneOf(body, "response_format", ["b64_json"], 422),
      answer: async ({ size, n }, answer) => {
        const b64_json = (await imageOf(String(size))).toString("base64");
        const data = Array.from({ length: Number(n) }, () => ({ b64_json, url: null, revised_prompt: null }));
        sendJson(answer, { created: 1_790_000_000, data });
      },
    },
    "POST /v1/images/edits": {
      check: (body) =>
        body["image[]"] instanceof File ? undefined : { status: 422, message: "image is missing" },
      answer: async (_, answer) =>
        sendJson(answer, {
          created: 1_790_000_000,
          data: [{ b64_json: (await imageOf("1024x1024", 30)).toString("base64") }],
        }),
    },
  },
};

const localAi: CompatibleServer = {
  key: bearer,
  keyIsOptional: true,
  error: ({ status, message }) => ({ error: { code: status, message, type: "" } }),
  operations: {
    "POST /v1/audio/speech": {
      check: (body) =>
        body.speed === 0 ? { status: 400, message: "speed" } : oneOf(body, "model", ["tts-1"], 500),
      answer: (_, answer) => streamAudio(answer, streamedWav(speechOf.pcm, 22_050), "audio/wav"),
    },
    "POST /v1/images/generations": {
      check: (body) => oneOf(body, "model", ["stablediffusion"], 500),
      answer: async (_, answer, baseUrl) =>
        sendJson(answer, { created: 1_790_000_000, data: [{ url: `${baseUrl}${imagePath}` }] }),
    },
  },
};

const groq: CompatibleServer = {
  key: bearer,
  error: openAiError,
  operations: {
    "POST /openai/v1/audio/speech": {
      check: (body) =>
        oneOf(body, "model", ["canopylabs/orpheus-v1-english", "canopylabs/orpheus-arabic-saudi"], 404) ??
        oneOf(body, "response_format", ["wav"], 400) ??
        (String(body.input).length > 200 ? { status: 400, message: "input is too long" } : undefined),
      answer: (_, answer) => streamAudio(answer, streamedWav(speechOf.pcm, 24_000), "audio/wav"),
    },
  },
};

const inworld: CompatibleServer = {
  key: { header: "authorization", value: `Basic ${key}` },
  error: openAiError,
  operations: {
    "POST /v1/audio/speech": {
      check: (body) => oneOf(body, "model", ["inworld-tts-2", "inworld-tts-1.5-mini"], 404),
      answer: (_, answer) => streamAudio(answer, speechOf.mp3, "audio/mpeg"),
    },
  },
};

const together: CompatibleServer = {
  key: bearer,
  error: openAiError,
  operations: {
    "POST /v1/audio/speech": {
      check: (body) =>
        oneOf(body, "model", ["hexgrad/Kokoro-82M"], 404) ??
        oneOf(body, "response_format", ["raw"], 400) ??
        oneOf(body, "stream", [true], 400) ??
        oneOf(body, "stream_format", [undefined], 400),
      answer: ({ model }, answer) =>
        streamEvents(answer, speechOf.pcm, (b64) => ({ object: "audio.tts.chunk", model, b64 }), ["[DONE]"]),
    },
    "GET /v1/voices": listing({
      data: [
        { model: "cartesia/sonic", voices: [{ id: "x", name: "friendly sidekick" }] },
        { model: "hexgrad/Kokoro-82M", voices: kokoroVoices.map((name) => ({ id: `id-${name}`, name })) },
      ],
    }),
  },
};

const azureOpenAi: CompatibleServer = {
  key: { header: "api-key", value: key },
  query: { "api-version": "2025-04-01-preview" },
  error: openAiError,
  operations: {
    "POST /openai/deployments/tts-1/audio/speech": {
      check: (body) => oneOf(body, "voice", ["alloy", "nova"], 400),
      answer: (_, answer) => streamAudio(answer, speechOf.mp3, "audio/mpeg"),
    },
  },
};

/** As the gateway's own interface is. */
const openRouterUsage = { prompt_tokens: 12, completion_tokens: 1290, total_tokens: 1302, cost: 0.0387 };

const openRouter: CompatibleServer = {
  key: bearer,
  error: ({ status, message }) => ({ error: { code: status, message } }),
  operations: {
    "POST /api/v1/images": {
      check: (body) =>
        oneOf(body, "model", ["google/gemini-2.5-flash-image", "openai/gpt-image-1.5"], 404) ??
        (referencesAreRight(body.input_references)
          ? undefined
          : { status: 400, message: "input_references is invalid" }),
      answer: async ({ stream }, answer) => {
        const preview = (await imageOf("64x64", 10)).toString("base64");
        const b64_json = (await imageOf("1024x1024", 200)).toString("base64");
        if (stream !== true) {
          sendJson(answer, { created: 1_790_000_000, data: [{ b64_json }], usage: openRouterUsage });
          return;
        }
        answer.start(200, { "content-type": "text/event-stream", "transfer-encoding": "chunked" });
        await answer.write(": OPENROUTER PROCESSING\n\n");
        for (const event of [
          { type: "image_generation.partial_image", b64_json: preview, partial_image_index: 0 },
          { type: "image_generation.completed", b64_json, created: 1_790_000_000, usage: openRouterUsage },
        ]) {
          await answer.write(`data: ${JSON.stringify(event)}\n\n`);
        }
        answer.end("data: [DONE]\n\n");
      },
    },
  },
};

function referencesAreRight(references: unknown): boolean {
  if (references === undefined) return true;
  return (
    Array.isArray(references) &&
    references.every(
      ({ type, image_url }) => type === "image_url" && /^data:image\/png;base64,/.test(image_url?.url),
    )
  );
}

/** By the name of the example. The keys that they want are "test-key". */
export const compatibleServers = {
  "kokoro-fastapi": kokoroFastApi,
  speaches,
  "vllm-omni": vllmOmni,
  localai: localAi,
  groq,
  inworld,
  together,
  "azure-openai": azureOpenAi,
  openrouter: openRouter,
} as const satisfies Readonly<Record<string, CompatibleServer>>;
