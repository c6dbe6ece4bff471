import { readPrompt } from "./prompt/read-prompt.ts";

export type { PaletteColor } from "./color/grade.ts";
export { type PaintRequest, paintSvg } from "./paint-svg.ts";

/** The words of a prompt that paintSvg passes over though they may mean something to see: each once, lower case. */
export function unrecognizedWords(prompt: string): readonly string[] {
  return readPrompt(prompt).unrecognized;
}
