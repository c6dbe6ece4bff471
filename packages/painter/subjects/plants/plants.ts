import { lch } from "../../color/color.ts";
import { blob, circle, ellipse, opacity, path, stroke } from "../../shapes.ts";
import { type Drawing, made } from "../drawing.ts";
import { leafyCrown } from "./leafy-crown.ts";

const greens = [lch(0.6, 0.14, 142), lch(0.66, 0.14, 134), lch(0.55, 0.12, 152)];

const cactus: Drawing = {
  grows: "apart",
  habitat: "desert",
  width: 90,
  height: 130,
  size: 0.4,
  colors: [lch(0.56, 0.12, 152)],
  draw: (b) =>
    [
      stroke("M-2 -46H-32V-78", b.own(-0.04), 17),
      stroke("M2 -36H34V-66", b.own(-0.07), 17),
      stroke("M0 -4V-112", b.own(), 27),
      stroke("M6 -4V-112", b.own(-0.07), 10),
      stroke("M-6 -8V-112M-1 -8V-114M-34 -52V-76M35 -42V-64", b.own(0.1), 1.6, opacity(0.7)),
      ...[
        [0, -126],
        [-32, -87],
        [34, -75],
      ].map(
        ([x = 0, y = 0]) =>
          circle(x - 4, y, 4.4, b.second(made.pink)) +
          circle(x + 4, y, 4.4, b.second(made.pink)) +
          circle(x, y - 3, 4.4, b.second(made.pink, 0.06)),
      ),
    ].join(""),
};

const mushroom: Drawing = {
  grows: "field",
  habitat: "forest",
  width: 110,
  height: 110,
  size: 0.34,
  colors: [made.red, made.orange, lch(0.6, 0.1, 50)],
  draw: (b) =>
    [
      path("M-16 0Q-12 -30 -18 -56H18Q12 -30 18 0Q0 6 -16 0Z", b.ink(made.cream)),
      path("M4 2Q6 -30 6 -56H18Q12 -30 18 0Q12 3 4 2Z", b.ink(made.cream, -0.08)),
      path("M-54 -50Q-50 -104 0 -106Q50 -104 54 -50Q28 -40 0 -40T-54 -50Z", b.own()),
      path("M-54 -50Q-28 -60 0 -60T54 -50Q28 -40 0 -40T-54 -50Z", b.ink(made.cream, -0.1)),
      ...[
        [-28, -76, 8],
        [2, -90, 9],
        [28, -74, 7],
        [-6, -68, 5],
        [14, -70, 4],
      ].map(([x = 0, y = 0, r = 0]) => ellipse(x, y, r, r * 0.8, b.ink(made.white))),
    ].join(""),
};

const bush: Drawing = {
  grows: "apart",
  habitat: "land",
  width: 110,
  height: 64,
  size: 0.18,
  reach: { bottom: 9 },
  colors: greens,
  draw: (b) =>
    leafyCrown(b, b.main, [
      [-34, -22, 22],
      [34, -22, 22],
      [-14, -36, 25],
      [16, -36, 25],
      [0, -18, 24],
    ]),
};

const leaf: Drawing = {
  habitat: "studio",
  width: 110,
  height: 150,
  size: 0.6,
  colors: [lch(0.62, 0.15, 142), lch(0.68, 0.17, 50)],
  draw: (b) =>
    blob([0, -150, 30, -110, 44, -70, 30, -30, 0, -14, -30, -30, -44, -70, -30, -110], b.own()) +
    path("M0 -150C30 -120 70 -60 0 -14Z", b.own(-0.07)) +
    stroke(
      "M0 0V-140M0 -40L24 -62M0 -40L-24 -62M0 -68L28 -92M0 -68L-28 -92M0 -96L20 -116M0 -96L-20 -116",
      b.own(0.14),
      2.4,
    ),
};

/** Plants that are neither trees nor flowers, by name. */
export const plants = { cactus, mushroom, bush, leaf };
