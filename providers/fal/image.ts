/**
 * Images of fal's apps that take `image_size` in pixels, as those of the FLUX family do: a job whose result has the images'
 * addresses. An image that the app's checker has blacked out (`has_nsfw_concepts`) is left out; where that is all, it is a
 * refusal by policy.
 */
import {
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type UpstreamReport,
} from "../contract.ts";
import type { FetchResult } from "../provider-http.ts";
import { isRecord } from "../upstream/failure.ts";
import { imageOutput, noImage } from "../upstream/image-answer.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { type Job, type JobOptions, submitJob } from "./job.ts";

const maxImageBytes = 64 * 1024 * 1024;

/** Makes the adapter. */
export function createImageAdapter(options: JobOptions): ImageAdapter {
  return {
    async generate(call, context) {
      const { upstreamModel: app, prompt: text } = call;
      const job = await submitJob(options, { app, input: inputOf(call), text }, context);
      const report = (): UpstreamReport | undefined => undefined;
      return { output: untilLeft(images(job, call.n, options.fetchResult), job), report };
    },
  };
}

/** What stays undefined is not sent, and an option can't stand in for it. */
function inputOf({ options, prompt, n, size, seed, format }: ImageCall): Readonly<Record<string, unknown>> {
  return {
    ...options,
    prompt,
    num_images: n,
    image_size: size,
    seed,
    output_format: format,
    sync_mode: false,
    enable_safety_checker: true,
  };
}

async function* images(job: Job, n: number, fetchResult: FetchResult): AsyncGenerator<ImageOutput, void> {
  const { images: made, has_nsfw_concepts: flags } = await job.result();
  const all = Array.isArray(made) ? made.filter(isRecord).slice(0, n) : [];
  const fine = all.filter((_, index) => !(Array.isArray(flags) && flags[index] === true));
  if (all.length === 0) throw noImage();
  if (fine.length === 0) {
    throw new ProviderError("content_policy", "The upstream keeps what it made back by its policy.");
  }
  for (const { url } of fine) {
    if (typeof url !== "string") throw noImage();
    yield imageOutput(await fetchResult({ url, signal: job.signal, maxBytes: maxImageBytes }));
  }
}
