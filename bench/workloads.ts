import type { Exchange } from "./load.ts";
import type { Target } from "./targets.ts";

/** One kind of request, sent to every target. */
export interface Workload {
  readonly title: string;
  /** Requests in flight. */
  readonly concurrency: number;
  /** What to send to a target, and what must come back. */
  exchangeOf(target: Target): Exchange;
}

/** Names the workloads of the table. */
export type WorkloadName = "burst" | "paced" | "one" | "image";

const audioBytes = 81_920;
const audio = `audio=${audioBytes} chunk=4096`;

/** What the table measures. `paced` has more in flight, since each of its requests takes 200 ms by design. */
export const workloads: Readonly<Record<WorkloadName, Workload>> = {
  burst: speechWorkload("speech burst: 20 × 4 KiB at once", 16, audio, audioBytes),
  paced: speechWorkload("speech paced: 20 × 4 KiB, 10 ms apart", 64, `${audio} interval=10`, audioBytes),
  one: speechWorkload("one at a time: 20 × 4 KiB at once", 1, audio, audioBytes),
  image: imageWorkload("image of 1 MiB", 8, 1_048_576),
};

/** Their names, in the order of the table. */
export const workloadNames = Object.keys(workloads) as readonly WorkloadName[];

/** Speech, as the stand-in upstream makes it when the input says `marker`. */
export function speechWorkload(
  title: string,
  concurrency: number,
  marker: string,
  answerBytes: number,
): Workload {
  return {
    title,
    concurrency,
    exchangeOf: ({ baseUrl, isProxy, apiKey }: Target) => ({
      url: `${baseUrl}/audio/speech`,
      apiKey,
      body: JSON.stringify({
        model: isProxy ? "tts-1" : "openai/tts-1",
        input: `Hello. [[${marker}]]`,
        voice: "alloy",
        response_format: "pcm",
      }),
      isWhole: (bytes) => bytes === answerBytes,
    }),
  };
}

function imageWorkload(title: string, concurrency: number, imageBytes: number): Workload {
  /** What base64 makes of them; the rest of an answer is its frame. */
  const encodedBytes = Math.ceil(imageBytes / 3) * 4;
  return {
    title,
    concurrency,
    exchangeOf: ({ baseUrl, isProxy, apiKey }: Target) => ({
      url: isProxy ? `${baseUrl}/images/generations` : `${baseUrl}/images`,
      apiKey,
      body: JSON.stringify({
        model: isProxy ? "gpt-image-1.5" : "openai/gpt-image-1.5",
        prompt: `A square of noise. [[image=${imageBytes}]]`,
      }),
      isWhole: (bytes) => bytes >= encodedBytes && bytes < encodedBytes + 2048,
    }),
  };
}
