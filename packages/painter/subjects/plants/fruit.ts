import { lch } from "../../color/color.ts";
import { blob, circle, ellipse, opacity, path, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";

function leafAt(b: Brush, x: number, y: number, turn: number): string {
  return `<g transform="translate(${x} ${y}) rotate(${turn})">${path("M0 0Q12 -16 34 -8Q20 8 0 0Z", b.ink(made.leaf))}${stroke("M2 -1Q16 -7 28 -7", b.ink(made.leaf, 0.12), 1.4)}</g>`;
}

function shine(b: Brush, d: string): string {
  return stroke(d, b.ink(made.white), 6, opacity(0.45));
}

const apple: Drawing = {
  habitat: "table",
  width: 100,
  height: 106,
  size: 0.28,
  colors: [made.red, lch(0.76, 0.17, 130)],
  draw: (b) =>
    [
      path(
        "M0 -76Q14 -90 34 -86Q56 -76 48 -38Q38 0 14 0Q0 -5 -14 0Q-38 0 -48 -38Q-56 -76 -34 -86Q-14 -90 0 -76Z",
        b.own(),
      ),
      path("M22 -87Q56 -80 48 -38Q38 0 14 0Q46 -40 22 -87Z", b.own(-0.08)),
      path("M-14 -78Q0 -66 14 -78Q0 -74 -14 -78Z", b.own(-0.16)),
      stroke("M0 -74Q0 -92 8 -104", b.ink(made.bark), 5),
      leafAt(b, 4, -90, -12),
      shine(b, "M-34 -60Q-32 -72 -22 -76"),
    ].join(""),
};

const pear: Drawing = {
  habitat: "table",
  width: 90,
  height: 128,
  size: 0.33,
  colors: [lch(0.83, 0.15, 112), lch(0.85, 0.15, 95)],
  draw: (b) =>
    [
      stroke("M0 -104Q2 -116 9 -126", b.ink(made.bark), 5),
      leafAt(b, 3, -112, -6),
      blob(
        [0, -108, 17, -98, 23, -72, 42, -36, 30, -4, 0, 0, -30, -4, -42, -36, -23, -72, -17, -98],
        b.own(),
      ),
      path("M4 -108Q20 -102 23 -72Q46 -40 40 -22Q32 2 4 0Q36 -30 14 -72Q14 -98 4 -108Z", b.own(-0.07)),
      shine(b, "M-26 -44Q-22 -56 -14 -66"),
    ].join(""),
};

const orange: Drawing = {
  habitat: "table",
  width: 96,
  height: 94,
  size: 0.25,
  reach: { top: 16 },
  colors: [lch(0.76, 0.18, 58)],
  draw: (b) =>
    [
      circle(0, -46, 46, b.own()),
      path("M16 -89A46 46 0 0 1 16 -3A60 60 0 0 0 16 -89Z", b.own(-0.08)),
      ...Array.from({ length: 14 }, () =>
        circle(b.random.range(-32, 26), b.random.range(-74, -16), 1.4, b.own(-0.08)),
      ),
      leafAt(b, 2, -88, -24),
      circle(0, -88, 3.4, b.ink(made.leaf, -0.12)),
      shine(b, "M-32 -58Q-28 -72 -18 -78"),
    ].join(""),
};

const lemon: Drawing = {
  habitat: "table",
  width: 116,
  height: 76,
  size: 0.21,
  colors: [lch(0.91, 0.17, 100)],
  draw: (b) =>
    [
      path(
        "M-56 -36Q-50 -44 -42 -48Q-28 -74 2 -74Q34 -74 44 -50Q54 -46 58 -36Q54 -26 44 -24Q32 0 0 0Q-30 0 -42 -24Q-50 -28 -56 -36Z",
        b.own(),
      ),
      path("M20 -71Q38 -66 44 -50Q54 -46 58 -36Q54 -26 44 -24Q32 0 0 0Q42 -24 20 -71Z", b.own(-0.06)),
      shine(b, "M-30 -52Q-22 -62 -10 -64"),
    ].join(""),
};

const banana: Drawing = {
  habitat: "table",
  width: 140,
  height: 86,
  size: 0.24,
  colors: [lch(0.9, 0.17, 97)],
  draw: (b) =>
    [
      path("M-62 -80Q-48 -20 30 -22Q54 -26 64 -44L70 -40Q64 0 10 2Q-60 2 -72 -74Z", b.own()),
      path("M-70 -68Q-54 -8 24 -10Q52 -12 69 -38Q64 0 10 2Q-58 2 -70 -68Z", b.own(-0.07)),
      path("M-74 -74L-70 -90L-60 -88L-60 -76Z", b.ink(made.bark)) + circle(67, -42, 4.6, b.ink(made.bark)),
    ].join(""),
};

const cherry: Drawing = {
  habitat: "table",
  width: 100,
  height: 110,
  size: 0.28,
  colors: [lch(0.52, 0.21, 22)],
  draw: (b) =>
    [
      stroke("M-22 -40Q-14 -82 12 -106Q22 -80 26 -34", b.ink(made.leaf, -0.1), 4),
      leafAt(b, 12, -104, 14),
      circle(-24, -24, 24, b.own()) + circle(26, -22, 22, b.own(-0.04)),
      shine(b, "M-38 -28Q-36 -36 -30 -38") + shine(b, "M13 -26Q15 -33 20 -35"),
    ].join(""),
};

const strawberry: Drawing = {
  habitat: "table",
  width: 84,
  height: 104,
  size: 0.28,
  colors: [lch(0.6, 0.22, 25)],
  draw: (b) =>
    [
      path("M0 0Q-44 -34 -40 -66Q-34 -84 0 -82Q34 -84 40 -66Q44 -34 0 0Z", b.own()),
      path("M12 -83Q36 -82 40 -66Q44 -34 0 0Q32 -40 12 -83Z", b.own(-0.06)),
      ...[
        [-22, -62],
        [0, -62],
        [22, -62],
        [-12, -44],
        [12, -44],
        [-20, -36],
        [0, -28],
        [18, -32],
        [-4, -14],
      ].map(([x = 0, y = 0]) => ellipse(x, y, 1.8, 3, b.ink(made.yellow))),
      path(
        "M0 -78Q-16 -60 -32 -70Q-18 -74 -18 -86Q-6 -80 0 -96Q6 -80 18 -86Q18 -74 32 -70Q16 -60 0 -78Z",
        b.ink(made.leaf),
      ),
      stroke("M0 -86V-102", b.ink(made.leaf, -0.08), 4),
    ].join(""),
};

const watermelon: Drawing = {
  habitat: "table",
  width: 150,
  height: 82,
  size: 0.25,
  colors: [lch(0.66, 0.2, 20)],
  draw: (b) =>
    [
      path("M-74 -76A74 76 0 0 0 74 -76Z", b.ink(lch(0.55, 0.14, 148))),
      path("M-66 -76A66 66 0 0 0 66 -76Z", b.ink(lch(0.92, 0.07, 125))),
      path("M-59 -76A59 58 0 0 0 59 -76Z", b.own()),
      ...[
        [-34, -64],
        [-12, -62],
        [12, -62],
        [34, -64],
        [-22, -44],
        [0, -40],
        [22, -44],
        [0, -26],
      ].map(([x = 0, y = 0]) => ellipse(x, y, 2.6, 4.6, b.ink(made.black))),
    ].join(""),
};

/** Fruit, by name. */
export const fruit = { apple, pear, orange, lemon, banana, cherry, strawberry, watermelon };
