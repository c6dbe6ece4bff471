import type { Lch } from "../color/color.ts";
import type { Subject } from "../prompt/read-prompt.ts";
import { type Drawing, isCentred } from "../subjects/drawing.ts";

/** A part of the picture in which subjects may be put: their feet (or middles, where they float) come to lie in it. */
export interface Zone {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly kind: "ground" | "water" | "air" | "float";
  /** How large things are here beside what their drawings ask for; 1 unless given. */
  readonly scale?: number;
}

/** One subject in its place. */
export interface Actor {
  readonly subject: Subject;
  readonly drawing: Drawing;
  readonly color: Lch | undefined;
  readonly second: Lch | undefined;
  x: number;
  y: number;
  scale: number;
  flip: boolean;
  turn: number;
  readonly zone: Zone;
}

/** The y of an actor's drawing: what usually flies may have to stand, and what stands may have to float. */
export function originOf({ drawing, zone, y, scale }: Actor): number {
  const half = (drawing.height * scale) / 2;
  if (zone.kind === "ground") return isCentred(drawing) ? y - half * 0.94 : y;
  return zone.kind === "water" || isCentred(drawing) ? y : y + half;
}

/** A rectangle of the picture. */
export interface Extent {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Where an actor is painted, with all its reach, mirrored and turned as it is. */
export function extentOf(actor: Actor): Extent {
  const { drawing, x, scale, flip, turn } = actor;
  const { left = 0, right = 0, top = 0, bottom = 0 } = drawing.reach ?? {};
  const [half, foot] = [drawing.width / 2, isCentred(drawing) ? drawing.height / 2 : 0];
  const side = flip ? -scale : scale;
  const angle = (turn * Math.PI) / 180;
  const [xs, ys]: [number[], number[]] = [[], []];
  for (const across of [(-half - left) * side, (half + right) * side]) {
    for (const down of [(foot - drawing.height - top) * scale, (foot + bottom) * scale]) {
      xs.push(x + across * Math.cos(angle) - down * Math.sin(angle));
      ys.push(originOf(actor) + across * Math.sin(angle) + down * Math.cos(angle));
    }
  }
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
}
