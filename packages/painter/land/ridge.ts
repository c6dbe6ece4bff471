import type { NoiseFunction2D } from "simplex-noise";
import { type Lch, lift, mix, toHex } from "../color/color.ts";
import { num, path, straight } from "../shapes.ts";
import type { Stage } from "../stage.ts";

/** The form of a line of hills or mountains against what is behind it. */
export interface RidgeForm {
  /** Where the line runs when it is at its lowest. */
  readonly base: number;
  /** How far it rises above that. */
  readonly amplitude: number;
  /** From hill to hill. */
  readonly wavelength: number;
  /** How many times finer detail is added; 1 is smooth. */
  readonly octaves: number;
  /** With sharp tops in place of round ones. */
  readonly sharp?: boolean;
}

/** The line as x, y, x, y … from beyond the left edge to beyond the right one. */
export function ridgeLine(stage: Stage, form: RidgeForm, noise: NoiseFunction2D): number[] {
  const points: number[] = [];
  const step = form.octaves > 2 ? 9 : 16;
  for (let x = -20; x <= stage.width + 20; x += step)
    points.push(x, form.base - form.amplitude * heightAt(x, form, noise));
  return points;
}

function heightAt(
  x: number,
  { wavelength, octaves, sharp = false }: RidgeForm,
  noise: NoiseFunction2D,
): number {
  let [sum, total, weight] = [0, 0, 1];
  for (let octave = 0; octave < octaves; octave++) {
    const value = noise((x / wavelength) * 2 ** octave, octave * 17.3);
    sum += weight * (sharp ? 1 - Math.abs(value) * 1.6 : 0.5 + value * 0.5);
    total += weight;
    weight *= sharp ? 0.42 : 0.36;
  }
  return Math.max(0, sum / total);
}

/** The y of a line of ridgeLine() at x. */
export function lineAt(points: readonly number[], x: number): number {
  for (let i = 0; i + 3 < points.length; i += 2) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = points.slice(i, i + 4);
    if (x <= x2) return y1 + ((y2 - y1) * Math.max(0, x - x1)) / (x2 - x1);
  }
  return points.at(-1) ?? 0;
}

/** The area from a line down to `bottom`. */
export function below(points: readonly number[], bottom: number, fill: string): string {
  const [first = 0, last = 0] = [points[0], points.at(-2)];
  return path(`${straight(points)}L${num(last)} ${num(bottom)}L${num(first)} ${num(bottom)}Z`, fill);
}

/** A fill for an area as it is seen from afar: its own colour at the top, paler in the mist at its foot. */
export function misty(stage: Stage, color: Lch, depth: number, mist = 0.35): string {
  const top = stage.light.seen(color, { depth });
  return stage.canvas.linear([
    { at: 0, color: lift(top, 0.015) },
    { at: 1, color: mix(top, stage.light.haze, mist * (1 - depth * 0.4)) },
  ]);
}

/** The colour of something far away as `#rrggbb`, lighter or darker by an amount. */
export function farInk(stage: Stage, color: Lch, depth: number, by = 0): string {
  return toHex(lift(stage.light.seen(color, { depth }), by));
}
