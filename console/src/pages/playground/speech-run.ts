import type { components } from "../../../gen/openapi.ts";
import { type Api, answerOf } from "../../api/api.ts";
import { ApiFailure } from "../../api/api-failure.ts";
import { type Unheeded, unheededOf } from "./ignored-notice.tsx";
import { canStreamMp3, LiveMp3, LivePcm, type LiveSound } from "./live-sound.ts";
import { type SampleForm, wavOf } from "./wav.ts";

/** The body of a call. */
export type SpeechRequest = components["schemas"]["SpeechRequest"];

/** What has come of a call so far. */
export interface SpeechRun {
  readonly state: "running" | "done" | "cancelled" | "failed";
  readonly request: SpeechRequest;
  readonly firstByteMs?: number;
  readonly bytes: number;
  readonly generationId?: string;
  readonly unheeded: Unheeded;
  /** Plays what has come while more of it comes. */
  readonly live?: LiveSound;
  /** All of it, or what came of it until it ended early. */
  readonly file?: Blob;
  readonly failure?: unknown;
}

/** Calls, and tells each step; ends early, as cancelled, when the signal says so. Never rejects. */
export async function runSpeech(
  api: Api,
  request: SpeechRequest,
  signal: AbortSignal,
  tell: (run: SpeechRun) => void,
): Promise<void> {
  let run: SpeechRun = { state: "running", request, bytes: 0, unheeded: { parameters: [], words: [] } };
  const change = (more: Partial<SpeechRun>) => {
    run = { ...run, ...more };
    tell(run);
  };
  change({});
  const startedMs = performance.now();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let form: SampleForm | undefined;
  const file = () => (pieces.length === 0 ? {} : { file: fileOf(pieces, form) });
  try {
    const call = api.POST("/audio/speech", { body: request, parseAs: "stream", signal });
    const stream = await answerOf(call);
    const { response } = await call;
    form = request.response_format === "pcm" ? formOf(response) : undefined;
    const live = liveOf(form);
    const generationId = response.headers.get("x-generation-id") ?? "";
    change({ unheeded: unheededOf(response), generationId, ...(live && { live }) });
    for await (const piece of piecesOf(stream, response)) {
      pieces.push(piece);
      live?.push(piece);
      const firstByteMs = run.firstByteMs ?? performance.now() - startedMs;
      change({ bytes: run.bytes + piece.length, firstByteMs });
    }
    live?.finish();
    change({ state: "done", ...file() });
  } catch (thrown) {
    run.live?.finish();
    if (signal.aborted) change({ state: "cancelled", ...file() });
    else change({ state: "failed", failure: thrown, ...file() });
  }
}

function formOf({ headers }: Response): SampleForm {
  return {
    rateHz: Number(headers.get("x-audio-sample-rate")),
    channels: Number(headers.get("x-audio-channels")),
  };
}

function liveOf(form: SampleForm | undefined): LiveSound | undefined {
  if (form !== undefined) return new LivePcm(form);
  return canStreamMp3() ? new LiveMp3() : undefined;
}

function fileOf(pieces: readonly Uint8Array<ArrayBuffer>[], form: SampleForm | undefined): Blob {
  return form === undefined ? new Blob([...pieces], { type: "audio/mpeg" }) : wavOf(pieces, form);
}

/** The pieces of an answer as they come. Throws ApiFailure where it ends before its end. */
export async function* piecesOf(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  response: Response,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((thrown: unknown) => {
      throw new ApiFailure(brokenOff, response, { cause: thrown });
    });
    if (done) return;
    yield value;
  }
}

const brokenOff = { error: { code: 502, message: "The answer broke off before its end" } };
