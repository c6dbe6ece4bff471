import { clampChroma, formatHex } from "culori";

/** A colour in OKLCH: lightness 0 to 1, chroma 0 to about 0.3, hue in degrees. */
export interface Lch {
  readonly l: number;
  readonly c: number;
  readonly h: number;
}

/** A colour in OKLab. */
export interface Lab {
  readonly l: number;
  readonly a: number;
  readonly b: number;
}

const radians = Math.PI / 180;

/** Short for a colour in OKLCH. */
export function lch(l: number, c: number, h: number): Lch {
  return { l, c, h };
}

/** OKLCH to OKLab. */
export function toLab({ l, c, h }: Lch): Lab {
  return { l, a: c * Math.cos(h * radians), b: c * Math.sin(h * radians) };
}

/** OKLab to OKLCH, its hue from 0 to below 360. */
export function fromLab({ l, a, b }: Lab): Lch {
  return { l, c: Math.hypot(a, b), h: (Math.atan2(b, a) / radians + 360) % 360 };
}

/** What lies between two colours in OKLab; amount 0 is the first, 1 the second. */
export function mix(first: Lch, second: Lch, amount: number): Lch {
  const [from, to] = [toLab(first), toLab(second)];
  const between = (low: number, high: number) => low + (high - low) * amount;
  return fromLab({ l: between(from.l, to.l), a: between(from.a, to.a), b: between(from.b, to.b) });
}

/** The same colour, lighter (or darker, below 0) by an amount of lightness. */
export function lift(color: Lch, by: number): Lch {
  return { ...color, l: Math.min(0.99, Math.max(0.04, color.l + by)) };
}

/** Degrees between two hues, 0 to 180. */
export function hueDistance(first: number, second: number): number {
  const apart = Math.abs(first - second) % 360;
  return apart > 180 ? 360 - apart : apart;
}

/**
 * `#rrggbb`, with what no screen can show brought nearer to grey. Dark yellows, which look like mud, are turned towards
 * amber.
 */
export function toHex(color: Lch): string {
  const yellowness = Math.max(0, 1 - hueDistance(color.h, 96) / 26);
  const darkness = Math.min(1, Math.max(0, (0.78 - color.l) / 0.35));
  const h = color.h - 38 * yellowness * darkness;
  return formatHex(clampChroma({ mode: "oklch", l: color.l, c: color.c, h }, "oklch"));
}
