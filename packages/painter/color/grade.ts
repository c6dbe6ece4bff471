import type { Mood } from "../prompt/vocabulary.ts";
import { fromLab, hueDistance, type Lab, type Lch, lch, mix, toLab } from "./color.ts";

/** A change of every colour of a picture. */
export type Grade = (color: Lch) => Lch;

/** One colour of a reference image and how much of the image has it, 0 to 1. */
export interface PaletteColor extends Lab {
  readonly share: number;
}

/** Applies grades one after another. */
export function inOrder(grades: readonly Grade[]): Grade {
  return (color) => grades.reduce((graded, grade) => grade(graded), color);
}

const moodGrades: Readonly<Partial<Record<Mood, Grade>>> = {
  vibrant: (color) => ({ ...color, c: color.c * 1.3 }),
  calm: (color) => ({ ...color, l: color.l + (0.9 - color.l) * 0.08, c: color.c * 0.8 }),
  pastel: (color) => ({ ...color, l: 0.42 + color.l * 0.55, c: color.c * 0.7 }),
  monochrome: (color) => ({ ...color, c: Math.min(0.012, color.c * 0.1) }),
  vintage: (color) => mix({ ...color, c: color.c * 0.62 }, lch(0.35 + color.l * 0.55, 0.075, 72), 0.42),
  neon: (color) => ({ l: color.l > 0.6 ? color.l : color.l * 0.72, c: color.c * 1.55, h: color.h + 12 }),
  dark: (color) => ({ ...color, l: color.l * 0.86, c: color.c * 0.9 }),
  warm: (color) => mix(color, lch(color.l, 0.12, 55), 0.22),
  cold: (color) => mix(color, lch(color.l, 0.08, 240), 0.26),
};

/** The grade of a picture's moods. */
export function gradeOfMoods(moods: ReadonlySet<Mood>): Grade {
  return inOrder([...moods].flatMap((mood) => moodGrades[mood] ?? []));
}

/** Draws colours towards those that the prompt names for nothing in particular. */
export function gradeOfColors(colors: readonly Lch[]): Grade {
  const palette = colors.map((color) => ({ ...toLab(color), share: 1 }));
  return gradeOfPalette(palette, 0.5, 0);
}

/**
 * Draws colours towards a palette: each takes much of the hue and chroma (and a part, `depth`, of the lightness) of what
 * the palette has of its lightness and hue. An empty palette changes nothing.
 */
export function gradeOfPalette(palette: readonly PaletteColor[], strength = 0.8, depth = 0.3): Grade {
  if (palette.length === 0) return (color) => color;
  return (color) => {
    const from = toLab(color);
    let [total, l, a, b] = [0, 0, 0, 0];
    for (const entry of palette) {
      const weight = affinity(color, entry);
      total += weight;
      l += entry.l * weight;
      a += entry.a * weight;
      b += entry.b * weight;
    }
    const pull = (value: number, sum: number, by: number) => value + (sum / total - value) * by;
    return fromLab({ l: pull(from.l, l, depth), a: pull(from.a, a, strength), b: pull(from.b, b, strength) });
  };
}

/** How well a palette's colour stands for a colour; never 0. */
function affinity(color: Lch, entry: PaletteColor): number {
  const { c, h } = fromLab(entry);
  const tonal = Math.exp(-(((color.l - entry.l) / 0.2) ** 2));
  const chromatic = 1 + Math.min(1, (c * color.c) / 0.006) * (1 - hueDistance(color.h, h) / 90);
  return (0.02 + tonal) * (0.3 + Math.max(0, chromatic)) * Math.sqrt(0.05 + entry.share);
}
