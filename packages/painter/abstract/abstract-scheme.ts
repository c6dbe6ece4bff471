import { hueDistance, type Lch, lch, lift } from "../color/color.ts";
import type { Random } from "../random.ts";
import type { Stage } from "../stage.ts";

/** The colours of an abstract picture: its ground, and what is drawn on it from dark to light. */
export interface Scheme {
  readonly ground: Lch;
  readonly colors: readonly Lch[];
}

/** One way of making a picture of nothing in particular. */
export type AbstractMode = (stage: Stage, random: Random, scheme: Scheme) => string;

/** Colours in harmony: those of the prompt, or drawn around a hue. */
export function schemeOf({ reading }: Stage, random: Random): Scheme {
  const { moods, colors } = reading;
  const dark =
    moods.has("dark") ||
    moods.has("neon") ||
    (!moods.has("pastel") && !moods.has("calm") && random.chance(0.4));
  const named = colors.length > 0;
  const hue = named ? (random.pick(colors).h ?? 0) : random.range(0, 360);
  const offsets = random.pick([
    [0, 28, 56, 190],
    [0, 180, 30, 210],
    [0, 40, 80, 120],
    [0, 150, 210, 25],
    [0, 330, 300, 160],
  ] as const);
  const drawn = offsets.map((offset, index) => {
    const [l = 0.6, c = 0.14] =
      [
        [0.5, 0.15],
        [0.66, 0.17],
        [0.8, 0.12],
        [0.73, 0.16],
      ][index] ?? [];
    return harmonious(l, c, hue + offset);
  });
  const own = colors.flatMap((color) => [color, lift(color, color.l > 0.6 ? -0.16 : 0.18)]);
  const light = dark
    ? harmonious(0.9, 0.05, hue + 60)
    : harmonious(0.36, 0.11, hueDistance(hue + 10, 100) < 60 ? 290 : hue + 10);
  const ground = dark
    ? lch(0.2, 0.05, hueDistance(hue, 95) < 75 ? 285 : hue + 20)
    : lch(0.95, 0.025, (hue + 60) % 360);
  const warm = moods.has("warm") ? [lch(0.7, 0.18, 45), lch(0.84, 0.14, 80)] : [];
  return { ground, colors: [...(named ? own : drawn), ...warm, light] };
}

/** A colour whose lightness suits its hue: yellows are light, blues may be dark. */
function harmonious(l: number, c: number, hue: number): Lch {
  const h = ((hue % 360) + 360) % 360;
  const yellow = Math.max(0, 1 - Math.abs(h - 95) / 45);
  return lch(Math.min(0.95, l + yellow * 0.2), c, h);
}
