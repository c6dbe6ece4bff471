/**
 * A stand-in for the Gemini API as far as speech and images go: `generateContent` and `streamGenerateContent?alt=sse`.
 * Facts: ai.google.dev, "Speech generation", "Image generation", google/rpc/error_details.proto; SSE of the vendor ends
 * lines with CR LF.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createAudioSource, firstBytes } from "./stand-in/audio-source.ts";
import { createImageSource } from "./stand-in/image-source.ts";
import { LimitedBody } from "./stand-in/limited-body.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  type StandInOptions,
  startStandIn,
} from "./stand-in/stand-in-server.ts";

/** What becomes of one request. */
export interface GeminiBehaviour {
  /** An error in place of an answer. */
  readonly error?: { readonly status: number; readonly body: unknown };
  /** Of audio, in pieces of so many bytes with a pause between. */
  readonly totalBytes?: number;
  readonly pieceBytes?: number;
  readonly intervalMs?: number;
  readonly mimeType?: string;
  /** Why it ends; null: it ends without a reason. */
  readonly finishReason?: string | null;
  readonly blockReason?: string;
  /** Undefined: the usual; null: none. */
  readonly usage?: object | null;
  /** Breaks off after so many bytes of the body. */
  readonly cutAfterBytes?: number;
  /** Waits before the headers. */
  readonly beforeHeaders?: () => Promise<void>;
  /** Of an image: its length, encoding, and thoughts before it. */
  readonly imageBytes?: number;
  readonly imageFormat?: "png" | "jpeg";
  readonly thoughts?: boolean;
}

/** The stand-in and how it behaves next. */
export interface GeminiUpstream extends StandIn {
  /** Behaves so towards the next request only. */
  next(behaviour: GeminiBehaviour): void;
}

const refusal = (code: number, status: string, message: string, reason?: string) => ({
  error: {
    code,
    message,
    status,
    ...(reason !== undefined && {
      details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "googleapis.com" }],
    }),
  },
});

/** Starts it; `usual` is how it behaves towards requests that nothing else was said of. */
export async function startGemini(
  apiKey: string,
  usual: (text: string) => GeminiBehaviour = () => ({}),
  server: StandInOptions = {},
): Promise<GeminiUpstream> {
  const queue: GeminiBehaviour[] = [];
  const standIn = await startStandIn(async (request, answer) => {
    const refused = refusalOf(request, apiKey);
    const behaviour = queue.shift() ?? usual(request.text);
    const error = refused ?? behaviour.error;
    if (error !== undefined) {
      answer.send(
        error.status,
        { "content-type": "application/json; charset=UTF-8" },
        JSON.stringify(error.body),
      );
      return;
    }
    await behaviour.beforeHeaders?.();
    if (request.path.includes(":streamGenerateContent")) await sendAudio(answer, behaviour);
    else await sendImage(answer, behaviour);
  }, server);
  return Object.assign(standIn, { next: (behaviour: GeminiBehaviour) => void queue.push(behaviour) });
}

function refusalOf({ path, headers, json }: ReceivedRequest, apiKey: string): GeminiBehaviour["error"] {
  if (headers["x-goog-api-key"] !== apiKey) {
    const message = "API key not valid. Please pass a valid API key.";
    return { status: 400, body: refusal(400, "INVALID_ARGUMENT", message, "API_KEY_INVALID") };
  }
  if (!/^\/v1beta\/models\/[\w.-]+:(generateContent|streamGenerateContent\?alt=sse)$/.test(path)) {
    return { status: 404, body: refusal(404, "NOT_FOUND", "no such method") };
  }
  if (path.includes("no-such-model")) {
    return {
      status: 404,
      body: refusal(404, "NOT_FOUND", "models/no-such-model is not found for API version v1beta"),
    };
  }
  const { contents, generationConfig } = json as {
    contents?: unknown;
    generationConfig?: { responseModalities?: readonly string[] };
  };
  if (!Array.isArray(contents) || generationConfig?.responseModalities?.length !== 1) {
    return { status: 400, body: refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received.") };
  }
  return undefined;
}

const pcm = createAudioSource("pcm");
const usualUsage = {
  promptTokenCount: 8,
  candidatesTokenCount: 120,
  totalTokenCount: 128,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 8 }],
  candidatesTokensDetails: [{ modality: "AUDIO", tokenCount: 120 }],
};

/** The bytes that a client gets of audio, from the first. */
export function geminiAudio(length: number): Buffer {
  return firstBytes(pcm, length);
}

async function sendAudio(answer: StandInAnswer, behaviour: GeminiBehaviour): Promise<void> {
  const {
    totalBytes = 9600,
    pieceBytes = 2400,
    intervalMs,
    mimeType = "audio/L16;codec=pcm;rate=24000",
  } = behaviour;
  const { blockReason, usage = usualUsage, finishReason = "STOP" } = behaviour;
  answer.start(200, { "content-type": "text/event-stream", "transfer-encoding": "chunked" });
  const body = new LimitedBody(answer, behaviour.cutAfterBytes);
  const event = (content: object) =>
    body.write(`data: ${JSON.stringify({ ...content, modelVersion: "v" })}\r\n\r\n`);
  if (blockReason !== undefined) await event({ promptFeedback: { blockReason } });
  for (let at = 0; at < totalBytes && blockReason === undefined && !answer.isClosed; at += pieceBytes) {
    if (intervalMs !== undefined && at > 0) await pause(intervalMs);
    const data = Buffer.concat(pcm.pieces(at, Math.min(totalBytes, at + pieceBytes))).toString("base64");
    await event({
      candidates: [{ content: { parts: [{ inlineData: { mimeType, data } }], role: "model" }, index: 0 }],
    });
  }
  if (finishReason !== null && blockReason === undefined) {
    await event({
      candidates: [{ finishReason, index: 0 }],
      ...(usage !== null && { usageMetadata: usage }),
    });
  }
  await body.end();
}

const images = createImageSource();
const imageUsage = {
  promptTokenCount: 300,
  candidatesTokenCount: 1290,
  thoughtsTokenCount: 50,
  totalTokenCount: 1640,
  promptTokensDetails: [
    { modality: "TEXT", tokenCount: 42 },
    { modality: "IMAGE", tokenCount: 258 },
  ],
  candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1290 }],
};

/** The image that a client gets. */
export function geminiImage(format: "png" | "jpeg" = "png", bytes = 20_000): Promise<Buffer> {
  return images.image({ format, width: 64, height: 48, isTransparent: false, shade: 90, bytes });
}

async function sendImage(answer: StandInAnswer, behaviour: GeminiBehaviour): Promise<void> {
  const {
    imageFormat: format = "png",
    imageBytes,
    thoughts,
    blockReason,
    usage = imageUsage,
    finishReason = "STOP",
  } = behaviour;
  const inlineData = {
    mimeType: `image/${format}`,
    data: (await geminiImage(format, imageBytes)).toString("base64"),
  };
  const parts = [
    ...(thoughts === true
      ? [
          { text: "A first try.", thought: true },
          { inlineData, thought: true },
        ]
      : []),
    ...(finishReason === "STOP" ? [{ text: "Here it is." }, { inlineData, thoughtSignature: "c2ln" }] : []),
  ];
  const candidates = [{ content: { parts, role: "model" }, finishReason, index: 0 }];
  const content = blockReason === undefined ? { candidates } : { promptFeedback: { blockReason } };
  answer.start(200, { "content-type": "application/json; charset=UTF-8", "transfer-encoding": "chunked" });
  const body = new LimitedBody(answer, behaviour.cutAfterBytes);
  await body.write(JSON.stringify({ ...content, ...(usage !== null && { usageMetadata: usage }) }, null, 2));
  await body.end();
}
