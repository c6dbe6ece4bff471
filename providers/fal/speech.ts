/** Speech of fal's apps that take `text` and `voice`: a job whose result has the address of the audio, which comes whole. */
import type { SpeechAdapter } from "../contract.ts";
import type { FetchResult } from "../provider-http.ts";
import { emptyAnswer, speechAnswer } from "../upstream/audio.ts";
import { isRecord } from "../upstream/failure.ts";
import { type Job, type JobOptions, submitJob } from "./job.ts";

const maxAudioBytes = 128 * 1024 * 1024;

/** Makes the adapter. */
export function createSpeechAdapter(options: JobOptions): SpeechAdapter {
  return {
    async synthesize(call, context) {
      const { upstreamModel: app, input: text, voice, format, sampleRateHz, channels } = call;
      const job = await submitJob(options, { app, input: { ...call.options, text, voice }, text }, context);
      return await speechAnswer({
        format,
        shape: { sampleRateHz, channels },
        audio: audio(job, options.fetchResult),
        response: job,
      });
    },
  };
}

async function* audio(job: Job, fetchResult: FetchResult): AsyncGenerator<Uint8Array, void> {
  const { audio: file } = await job.result();
  if (!isRecord(file) || typeof file.url !== "string") throw emptyAnswer();
  const bytes = await fetchResult({ url: file.url, signal: job.signal, maxBytes: maxAudioBytes });
  if (bytes.length === 0) throw emptyAnswer();
  yield bytes;
}
