import type { Generation } from "./requests-query.ts";

/** What the timing of a generation is read from. */
export type Timed = Pick<Generation, "created_at" | "latency" | "first_byte_latency" | "provider_responses">;

/** One stretch of a request's time. */
export interface Stretch {
  /** Where it begins and how long it is, in percent of the whole. */
  readonly startPercent: number;
  readonly widthPercent: number;
  readonly isGood: boolean;
  readonly label: string;
}

/** The attempts along the time of a request; undefined where nobody knows how long it was. */
export function stretchesOf({ created_at, latency, provider_responses }: Timed): Stretch[] | undefined {
  if (latency === null) return undefined;
  const wholeMs = Math.max(latency, 1);
  const startMs = Date.parse(created_at);
  let endMs = 0;
  return provider_responses.map((attempt, index) => {
    // One that does not know when it was sent followed the one before.
    const beganMs = attempt.created_at === null ? endMs : Date.parse(attempt.created_at) - startMs;
    const fromMs = Math.min(Math.max(beganMs, 0), wholeMs);
    endMs = Math.min(fromMs + attempt.latency, wholeMs);
    return {
      startPercent: (fromMs / wholeMs) * 100,
      widthPercent: ((endMs - fromMs) / wholeMs) * 100,
      isGood: attempt.outcome === "succeeded",
      label: `${index + 1}. ${attempt.provider_name}`,
    };
  });
}
