import { lch } from "../../color/color.ts";
import { circle, ellipse, num, path, polygon, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";
import { ear, eyeAt, type Frame, type Measured, walker } from "./walker.ts";

const equine: Frame = {
  length: 92,
  depth: 36,
  legs: 46,
  legWidth: 8.5,
  neck: [22, -38, 21],
  head: [21, 14, 15],
  hooves: made.dark,
  sag: 5,
};

function equid(b: Brush, mane: string, extra: (at: Measured) => string = () => ""): string {
  const at = walker(b, equine);
  const [px, py] = at.poll;
  const [sx, sy] = at.shoulder;
  return [
    path(
      `M${at.rump[0] + 3} ${at.rump[1]}Q${at.rump[0] - 24} ${at.rump[1] + 6} ${at.rump[0] - 16} ${at.rump[1] + 48}Q${at.rump[0] - 8} ${at.rump[1] + 26} ${at.rump[0] + 6} ${at.rump[1] + 10}Z`,
      mane,
    ),
    at.body,
    path(
      `M${px + 5} ${py - 12}Q${px - 16} ${py - 8} ${num(sx - 14)} ${num(sy - 16)}Q${num(sx - 8)} ${num(sy - 2)} ${num(sx + 2)} ${num(sy - 4)}Q${px - 6} ${py + 14} ${px + 5} ${py - 12}Z`,
      mane,
    ),
    ear(b, px - 3, py - 7, 14, 6),
    ear(b, px + 5, py - 7, 13, 22),
    eyeAt(b, px + 8, py + 2),
    circle(at.nose[0] + 3, at.nose[1] + 1, 1.3, b.ink(made.dark)),
    extra(at),
  ].join("");
}

const coats = [lch(0.5, 0.09, 48), lch(0.42, 0.06, 45), lch(0.78, 0.07, 68), lch(0.9, 0.01, 90)];

const horse: Drawing = {
  habitat: "land",
  width: 160,
  height: 128,
  size: 0.4,
  colors: coats,
  draw: (b) => equid(b, b.second(made.dark)),
};

const unicorn: Drawing = {
  ...horse,
  reach: { top: 24 },
  colors: [made.white],
  draw: (b) =>
    equid(
      b,
      b.second(lch(0.78, 0.13, 330)),
      ({ poll: [x, y] }) =>
        polygon(`${x + 5},${y - 10} ${x + 24},${y - 44} ${x + 13},${y - 7}`, b.ink(made.gold)) +
        stroke(`M${x + 10} ${y - 18}l6 3M${x + 14} ${y - 26}l5 3`, b.ink(made.gold, -0.14), 1.6),
    ),
};

const zebra: Drawing = {
  ...horse,
  colors: [made.white],
  draw: (b) => {
    const bars = [-38, -28, -18, -8, 2, 12, 22, 32]
      .map((x) => `M${x} -80Q${x + 5} -66 ${x - 2} -50`)
      .join("");
    const rest = "M40 -84L52 -74M46 -95L58 -86M51 -106L62 -98M-34 -34H-42M-34 -24H-42M34 -34H26M34 -24H26";
    return equid(
      b,
      b.ink(made.black),
      () => stroke(bars, b.ink(made.black), 4) + stroke(rest, b.ink(made.black), 3.4),
    );
  },
};

const donkey: Drawing = {
  ...horse,
  height: 118,
  size: 0.36,
  colors: [lch(0.62, 0.02, 265), lch(0.6, 0.04, 60)],
  draw: (b) => {
    const at = walker(b, { ...equine, legs: 38, neck: [16, -30, 19], head: [22, 13, 16] });
    const [x, y] = at.poll;
    return (
      at.body +
      stroke(`M${at.rump[0]} ${at.rump[1]}q-14 14 -10 34`, b.own(-0.1), 4) +
      ear(b, x - 3, y - 6, 26, -6) +
      ear(b, x + 5, y - 6, 25, 16) +
      ellipse(at.nose[0] + 1, at.nose[1] + 1, 8, 7, b.ink(made.white)) +
      eyeAt(b, x + 9, y + 2)
    );
  },
};

/** Horses and their like, by name. */
export const horses = { horse, unicorn, zebra, donkey };
