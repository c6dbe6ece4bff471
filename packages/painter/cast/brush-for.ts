import type { Lch } from "../color/color.ts";
import { leafColors } from "../land/ground-color.ts";
import type { Random } from "../random.ts";
import { glow, type Stage } from "../stage.ts";
import { Brush, type Drawing } from "../subjects/drawing.ts";

/** Colours and distance of one drawing; what is left out the drawing decides. */
export interface BrushColors {
  readonly main?: Lch | undefined;
  readonly second?: Lch | undefined;
  /** 0 to 1. */
  readonly depth?: number;
}

/** The brush that a drawing is made with on a stage. */
export function brushFor(stage: Stage, drawing: Drawing, random: Random, colors: BrushColors = {}): Brush {
  return new Brush(stage.light, random, {
    main: colors.main ?? random.pick(drawing.colors),
    second: colors.second,
    depth: colors.depth ?? 0,
    leaves: leafColors(stage),
    shine: (color, strength, from) => glow(stage, color, strength, from),
    // On nothing there is no air that could shine: light stays near its lamp.
    haloScale: stage.cutOut ? 0.5 : 1,
    winter: stage.setting.season === "winter" || stage.reading.weather.has("snow"),
  });
}
