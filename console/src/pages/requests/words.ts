import type { Generation } from "./requests-query.ts";

/** The part of a record that says what was consumed. */
export type Consumption = Pick<
  Generation,
  "units" | "tokens_prompt" | "tokens_completion" | "native_tokens_reasoning" | "native_tokens_cached"
>;

const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });

/** A length of time: `850 ms`, `1.25 s`. */
export function durationText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

/** Which colour a state has; the word beside it says the same. */
export function toneOf(outcome: Generation["outcome"]): "good" | "warn" | "bad" {
  if (outcome === "succeeded") return "good";
  return outcome === "cancelled" ? "warn" : "bad";
}

/** What was consumed, each with its unit; nothing that is zero. */
export function consumed(generation: Consumption): string[] {
  const { units, tokens_prompt, tokens_completion } = generation;
  const amounts: [number, string][] = [
    [units.input_characters, "characters"],
    [units.output_images, units.output_images === 1 ? "image" : "images"],
    [units.output_pixels, "pixels"],
    [units.input_images, units.input_images === 1 ? "reference image" : "reference images"],
    [tokens_prompt, "input tokens"],
    [tokens_completion, "output tokens"],
    [generation.native_tokens_reasoning, "of them for reasoning"],
    [generation.native_tokens_cached, "input tokens from the cache"],
  ];
  const told = amounts
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${number.format(amount)} ${unit}`);
  const { output_audio_ms: audioMs } = units;
  return audioMs > 0 ? [...told, `${durationText(audioMs)} of audio`] : told;
}

/** What a generation made. */
export function mediumOf({ api_type }: Pick<Generation, "api_type">): string {
  return api_type === "tts" ? "Speech" : api_type === "image" ? "Image" : "Not known";
}
