import type { Lch } from "../../color/color.ts";
import { circle, num, path, rect, stroke } from "../../shapes.ts";
import { type Brush, made } from "../drawing.ts";

/** The measures of a four-legged animal that walks to the right. */
export interface Frame {
  /** Body from back to chest, and from back to belly. */
  readonly length: number;
  readonly depth: number;
  /** Height of the belly over the ground. */
  readonly legs: number;
  readonly legWidth: number;
  /** From the shoulder: x, y, thickness. */
  readonly neck: readonly [number, number, number];
  /** From the end of the neck: x, y, thickness. */
  readonly head: readonly [number, number, number];
  readonly hooves?: Lch;
  /** How the back sags; below 0 it arches. */
  readonly sag?: number;
}

/** A walker, and where more can be drawn on it. */
export interface Measured {
  readonly body: string;
  /** Where the neck ends and the head begins. */
  readonly poll: readonly [number, number];
  readonly nose: readonly [number, number];
  readonly rump: readonly [number, number];
  readonly shoulder: readonly [number, number];
}

/** Body, legs, neck and head; the far legs darker. */
export function walker(b: Brush, frame: Frame): Measured {
  const { length, depth, legs, legWidth, neck, head, hooves, sag = 0 } = frame;
  const half = length / 2;
  const back = -legs - depth;
  const shoulder = [half - depth * 0.38, back + depth * 0.34] as const;
  const poll = [shoulder[0] + neck[0], shoulder[1] + neck[1]] as const;
  const nose = [poll[0] + head[0], poll[1] + head[1]] as const;
  const leg = (x: number, lean: number, by: number) => {
    const foot =
      hooves === undefined
        ? ""
        : rect(
            x + lean - legWidth * 0.55,
            -legWidth * 0.9,
            legWidth * 1.1,
            legWidth * 0.9,
            b.ink(hooves),
            1.5,
          );
    return (
      stroke(
        `M${num(x)} ${num(-legs - depth * 0.28)}L${num(x + lean * 0.4)} ${num(-legs * 0.5)}L${num(x + lean)} ${num(-legWidth / 2)}`,
        b.own(by),
        legWidth,
      ) + foot
    );
  };
  const trunk = `M${-half} ${num(back + depth * 0.45)}Q${-half} ${back} ${num(-half + depth * 0.5)} ${back}Q0 ${num(back + sag)} ${num(half - depth * 0.5)} ${back}Q${half} ${back} ${half} ${num(back + depth * 0.5)}Q${half} ${num(-legs + 2)} ${num(half - depth * 0.4)} ${num(-legs + 2)}Q0 ${num(-legs + 8)} ${num(-half + depth * 0.45)} ${-legs}Q${-half} ${num(-legs - 2)} ${-half} ${num(back + depth * 0.45)}Z`;
  const belly = `M${num(-half + 2)} ${num(-legs - depth * 0.3)}Q0 ${num(-legs - depth * 0.1)} ${num(half - 1)} ${num(-legs - depth * 0.36)}Q${half} ${num(-legs + 2)} ${num(half - depth * 0.4)} ${num(-legs + 2)}Q0 ${num(-legs + 8)} ${num(-half + depth * 0.45)} ${-legs}Q${num(-half + 4)} ${-legs} ${num(-half + 2)} ${num(-legs - depth * 0.3)}Z`;
  const line = (from: readonly [number, number], to: readonly [number, number], width: number, by: number) =>
    stroke(`M${num(from[0])} ${num(from[1])}L${num(to[0])} ${num(to[1])}`, b.own(by), width);
  const near = half - legWidth * 1.1;
  const body = [
    leg(-near + legWidth * 1.3, -legWidth * 0.9, -0.12),
    leg(near - legWidth * 1.1, legWidth * 0.9, -0.12),
    path(trunk, b.own()),
    path(belly, b.own(-0.05)),
    leg(-near, legWidth * 0.3, -0.03),
    leg(near, -legWidth * 0.2, -0.03),
    line(shoulder, poll, neck[2], 0),
    line(poll, nose, head[2], 0.01),
  ].join("");
  return { body, poll, nose, rump: [-half, back + depth * 0.3], shoulder };
}

/** An eye as a dark disc with a glint. */
export function eyeAt(b: Brush, x: number, y: number, size = 2.4): string {
  return (
    circle(x, y, size, b.ink(made.black)) +
    circle(x + size * 0.3, y - size * 0.35, size * 0.32, b.ink(made.white))
  );
}

/** An upright ear, turned by degrees. */
export function ear(b: Brush, x: number, y: number, length: number, turn: number, by = -0.04): string {
  return `<g transform="translate(${num(x)} ${num(y)}) rotate(${turn})">${path(`M-${num(length * 0.24)} 0Q-${num(length * 0.3)} ${num(-length * 0.7)} 0 ${num(-length)}Q${num(length * 0.3)} ${num(-length * 0.7)} ${num(length * 0.24)} 0Z`, b.own(by))}</g>`;
}
