import { lch } from "../../color/color.ts";
import { circle, ellipse, num, path, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";

function leafAt(b: Brush, x: number, y: number, length: number, lift: number): string {
  return path(
    `M${x} ${y}Q${x + length * 0.4} ${y - lift * 1.2} ${x + length} ${y - lift}Q${x + length * 0.6} ${y + lift * 0.1} ${x} ${y}Z`,
    b.ink(made.leaf, length > 0 ? -0.05 : 0),
  );
}

function petals(y: number, count: number, length: number, width: number, color: string, turn = 0): string {
  return Array.from(
    { length: count },
    (_, i) =>
      `<ellipse cx="0" cy="${num(-length / 2)}" rx="${num(width / 2)}" ry="${num(length / 2)}" fill="${color}" transform="translate(0 ${y}) rotate(${num((360 / count) * i + turn)})"/>`,
  ).join("");
}

const flower: Drawing = {
  grows: "field",
  habitat: "land",
  width: 80,
  height: 140,
  size: 0.42,
  colors: [made.white, lch(0.8, 0.14, 0), made.yellow, lch(0.66, 0.16, 300)],
  draw: (b) =>
    [
      stroke("M0 0Q-6 -50 0 -100", b.ink(made.leaf), 4.4),
      leafAt(b, -2, -34, 34, 26),
      leafAt(b, -3, -52, -32, 24),
      petals(-102, 10, 37, 15, b.own(-0.05), 18),
      petals(-102, 10, 35, 13, b.own()),
      circle(0, -102, 13, b.second(lch(0.83, 0.16, 80))),
      circle(-2, -104, 8, b.second(lch(0.83, 0.16, 80), 0.06)),
    ].join(""),
};

const tulip: Drawing = {
  grows: "field",
  habitat: "land",
  width: 60,
  height: 130,
  size: 0.38,
  colors: [made.red, lch(0.78, 0.15, 0), made.yellow, lch(0.6, 0.17, 310)],
  draw: (b) =>
    [
      stroke("M0 0V-84", b.ink(made.leaf), 4.6),
      path("M-2 0Q-34 -30 -28 -74Q-12 -50 -2 -12Z", b.ink(made.leaf, 0.03)),
      path("M2 0Q30 -26 28 -62Q10 -42 2 -10Z", b.ink(made.leaf, -0.06)),
      path(
        "M-24 -124Q-30 -78 0 -78Q30 -78 24 -124Q14 -116 10 -106Q4 -122 0 -128Q-4 -122 -10 -106Q-14 -116 -24 -124Z",
        b.own(),
      ),
      path("M0 -128Q16 -106 8 -78H0Q-8 -78 -8 -78Q-16 -106 0 -128Z", b.own(0.06)),
      path("M24 -124Q30 -78 0 -78Q16 -90 12 -108Q16 -118 24 -124Z", b.own(-0.08)),
    ].join(""),
};

const sunflower: Drawing = {
  grows: "field",
  habitat: "land",
  width: 90,
  height: 165,
  size: 0.48,
  colors: [lch(0.87, 0.17, 88)],
  draw: (b) =>
    [
      stroke("M0 0Q5 -60 0 -118", b.ink(made.leaf), 6),
      path("M2 -40Q30 -76 52 -58Q42 -30 2 -40Z", b.ink(made.leaf, -0.04)),
      path("M2 -62Q-26 -96 -50 -78Q-40 -50 2 -62Z", b.ink(made.leaf, 0.02)),
      petals(-120, 16, 44, 13, b.own(-0.1), 11),
      petals(-120, 16, 42, 12, b.own()),
      circle(0, -120, 20, b.ink(lch(0.4, 0.08, 48))),
      ...Array.from({ length: 26 }, (_, i) => {
        const [r, a] = [3.5 * Math.sqrt(i), i * 2.4];
        return circle(r * Math.cos(a), -120 + r * Math.sin(a), 1.4, b.ink(lch(0.58, 0.11, 55)));
      }),
    ].join(""),
};

const rose: Drawing = {
  grows: "field",
  habitat: "land",
  width: 70,
  height: 140,
  size: 0.42,
  colors: [lch(0.55, 0.21, 22), lch(0.8, 0.12, 5)],
  draw: (b) =>
    [
      stroke("M0 0Q6 -40 0 -86", b.ink(made.leaf, -0.04), 4.4),
      leafAt(b, 2, -30, 32, 20),
      leafAt(b, 2, -48, -30, 20),
      stroke("M3 -20l6 -5M1 -62l-6 -5", b.ink(made.leaf, -0.04), 2.4),
      path("M-22 -86Q0 -74 22 -86L12 -78Q0 -72 -12 -78Z", b.ink(made.leaf)),
      circle(0, -106, 27, b.own(-0.06)),
      path("M-27 -108Q-26 -82 0 -79Q-20 -92 -14 -118Q-24 -116 -27 -108Z", b.own(0.02)),
      path("M27 -108Q26 -82 0 -79Q20 -92 14 -118Q24 -116 27 -108Z", b.own(-0.11)),
      circle(0, -112, 17, b.own(0.04)),
      path("M-15 -116Q-4 -94 15 -114Q12 -96 0 -95Q-13 -96 -15 -116Z", b.own(-0.05)),
      path(
        "M-8 -118Q0 -128 8 -118Q10 -108 0 -108Q-6 -109 -4 -115Q0 -119 3 -114",
        "none",
        `stroke="${b.own(-0.13)}" stroke-width="3" stroke-linecap="round"`,
      ),
    ].join(""),
};

const poppy: Drawing = {
  grows: "field",
  habitat: "land",
  width: 70,
  height: 130,
  size: 0.38,
  colors: [lch(0.6, 0.22, 29)],
  draw: (b) =>
    [
      stroke("M0 0Q-8 -50 0 -92", b.ink(made.leaf), 3.4),
      stroke("M-3 -30Q-18 -36 -26 -54M-3 -30Q12 -36 18 -48", b.ink(made.leaf, -0.03), 3),
      ellipse(-14, -104, 21, 19, b.own(-0.05)),
      ellipse(14, -104, 21, 19, b.own(-0.09)),
      ellipse(0, -95, 23, 15, b.own(0.02)),
      ellipse(0, -112, 19, 14, b.own(0.05)),
      circle(0, -102, 8, b.ink(made.black)),
      ...[0, 60, 120, 180, 240, 300].map((a) =>
        circle(
          11 * Math.cos((a * Math.PI) / 180),
          -102 + 9 * Math.sin((a * Math.PI) / 180),
          1.6,
          b.ink(made.black),
        ),
      ),
    ].join(""),
};

const lavender: Drawing = {
  grows: "field",
  habitat: "land",
  width: 80,
  height: 110,
  size: 0.34,
  colors: [lch(0.62, 0.15, 300)],
  draw: (b) =>
    [-26, -13, 0, 13, 26]
      .map((lean, i) => {
        const tall = 104 - Math.abs(lean) * 0.6;
        const buds = Array.from({ length: 8 }, (_, k) => {
          const part = 0.55 + 0.056 * k;
          const [x, y] = [lean * part ** 1.5 * 1.3, -tall * part];
          return ellipse(x - 3, y, 4, 3.4, b.own(0.05)) + ellipse(x + 3, y - 3, 4, 3.4, b.own(-0.05));
        });
        return (
          stroke(
            `M${lean * 0.15} 0Q${lean * 0.3} ${-tall * 0.5} ${num(lean * 1.3 * 0.97)} ${num(-tall * 0.97)}`,
            b.ink(made.leaf, i % 2 === 0 ? 0 : -0.06),
            2.6,
          ) + buds.join("")
        );
      })
      .join(""),
};

/** Flowers, by name. */
export const flowers = { flower, tulip, sunflower, rose, poppy, lavender };
