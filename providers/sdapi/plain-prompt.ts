/**
 * A prompt in which nothing is left that these servers take for more than words, as far as it costs or reaches something:
 *
 * - `<lora:name:1>`, `<hypernet:name:1>` and their like load files (AUTOMATIC1111, Forge, SD.Next);
 *   `<sd_cpp_extra_args>{…}</sd_cpp_extra_args>` sets any parameter, size and steps as well (stable-diffusion.cpp). All
 *   begin with "<", so no bracket stays: taking out whole tags could put a new one together.
 * - `AND` between parts of a prompt draws each of them for itself at every step.
 *
 * Weights such as `(word:1.2)` and `[this:that:0.5]` stay: they cost nothing worth counting.
 */
export function plainPrompt(prompt: string): string {
  return prompt.replace(/[<>]/g, " ").replace(/\bAND\b/g, "and");
}
