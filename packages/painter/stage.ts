import type { Canvas } from "./canvas.ts";
import { type Lch, mix } from "./color/color.ts";
import type { InkOptions, Light } from "./color/light.ts";
import type { Reading } from "./prompt/read-prompt.ts";
import type { Random } from "./random.ts";
import type { Setting } from "./scene/setting.ts";

/** Everything that the parts of one picture are drawn with. The shorter side is 1,000 units. */
export interface Stage {
  readonly width: number;
  readonly height: number;
  /** Where the sky meets the land. */
  readonly horizon: number;
  readonly canvas: Canvas;
  readonly light: Light;
  readonly reading: Reading;
  readonly setting: Setting;
  /** How much fine detail: about 1; less for low and more for high quality. */
  readonly detail: number;
  /** The sun or moon. */
  readonly sun: { readonly x: number; readonly y: number; readonly radius: number };
  readonly random: Random;
  /** The subjects are painted alone, on nothing. */
  readonly cutOut: boolean;
}

/** The length of the shorter side. */
export const shortSide = 1_000;

/** How many of something: `usual` in a square picture of medium quality; more in larger or finer ones. */
export function countOf(stage: Stage, usual: number, share = 1): number {
  const area = (stage.width * stage.height) / shortSide ** 2;
  return Math.max(1, Math.round(usual * stage.detail * area ** 0.85 * share));
}

/** A fill from one colour to another, top to bottom, both under the stage's light. */
export function fade(stage: Stage, top: Lch, bottom: Lch, from: InkOptions = {}, to = from): string {
  return stage.canvas.linear([
    { at: 0, color: stage.light.ink(top, from) },
    { at: 0.5, color: mix(stage.light.seen(top, from), stage.light.seen(bottom, to), 0.5) },
    { at: 1, color: stage.light.ink(bottom, to) },
  ]);
}

/** A fill that shines from its middle (or its top) and is gone at its edge (or its foot). */
export function glow(
  { canvas }: Stage,
  color: string,
  strength: number,
  from: "middle" | "top" = "middle",
): string {
  const stops = [
    { at: 0, color, opacity: strength },
    { at: 0.45, color, opacity: strength * (from === "middle" ? 0.42 : 0.7) },
    { at: 1, color, opacity: 0 },
  ];
  return from === "middle" ? canvas.radial(stops) : canvas.linear(stops);
}
