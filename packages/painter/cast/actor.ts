import type { Lch } from "../color/color.ts";
import type { Subject } from "../prompt/read-prompt.ts";
import type { Drawing } from "../subjects/drawing.ts";

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
