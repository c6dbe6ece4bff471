import { lch } from "../color/color.ts";
import { circle, ellipse, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const pumpkin: Drawing = {
  habitat: "land",
  width: 140,
  height: 110,
  size: 0.28,
  colors: [lch(0.72, 0.18, 52)],
  draw: (b) => {
    const shining = b.lit ? b.glow(made.lamp) : b.own(-0.3);
    return [
      path("M-6 -84Q-10 -104 8 -114L18 -106Q8 -100 10 -84Z", b.ink(made.leaf, -0.12)),
      ellipse(-40, -44, 30, 42, b.own(-0.07)) + ellipse(40, -44, 30, 42, b.own(-0.11)),
      ellipse(-22, -45, 30, 45, b.own(-0.02)) + ellipse(22, -45, 30, 45, b.own(-0.06)),
      ellipse(0, -46, 25, 46, b.own(0.03)),
      polygon("-36,-50 -14,-50 -25,-68", shining) +
        polygon("14,-50 36,-50 25,-68", shining) +
        polygon("-6,-40 6,-40 0,-50", shining),
      path(
        "M-42 -34Q0 -18 42 -34Q30 -6 0 -6T-42 -34ZM-16 -26V-17H-8V-25ZM8 -12V-20H16V-14Z",
        shining,
        'fill-rule="evenodd"',
      ),
    ].join("");
  },
};

const cake: Drawing = {
  habitat: "table",
  width: 150,
  height: 130,
  size: 0.42,
  colors: [lch(0.82, 0.11, 0), made.cream, lch(0.5, 0.07, 48)],
  draw: (b) => {
    const drip = (y: number, half: number, color: string) => {
      const drops: string[] = [];
      for (let x = -half; x < half; x += half / 4)
        drops.push(`q${half / 8} ${b.random.range(14, 26).toFixed(1)} ${half / 4} 0`);
      return path(`M${-half} ${y}${drops.join("")}V${y - 9}H${-half}Z`, color);
    };
    return [
      ellipse(0, -3, 76, 9, b.ink(made.white, -0.04)),
      rect(-62, -48, 124, 46, b.ink(made.cream, -0.03), 6) +
        drip(-40, 62, b.own()) +
        rect(-62, -52, 124, 12, b.own(), 6),
      rect(-42, -90, 84, 40, b.own(0.04), 6) +
        drip(-82, 42, b.second(made.white)) +
        rect(-42, -93, 84, 11, b.second(made.white), 5),
      ...[-26, 0, 26].map(
        (x, i) =>
          rect(x - 3, -116, 6, 24, b.ink([made.red, made.yellow, made.teal][i] ?? made.red)) +
          path(`M${x} -118Q${x - 7} -124 ${x} -136Q${x + 7} -124 ${x} -118Z`, b.glow(made.fire)) +
          b.halo(x, -125, 15, made.lamp),
      ),
      ...[-50, -30, -10, 10, 30, 50].map((x) => circle(x, -14, 4, b.ink(made.red))),
    ].join("");
  },
};

const icecream: Drawing = {
  habitat: "table",
  width: 80,
  height: 150,
  size: 0.46,
  colors: [lch(0.84, 0.1, 5), lch(0.9, 0.07, 160), made.cream],
  draw: (b) =>
    [
      polygon("-28,-74 28,-74 0,0", b.ink(made.wood, 0.16)),
      stroke("M-20 -74L10 -26M-6 -74L16 -40M20 -74L-10 -26M6 -74L-16 -40", b.ink(made.wood, 0.03), 2),
      circle(-17, -86, 23, b.second(lch(0.45, 0.07, 48))) + circle(17, -86, 23, b.own(-0.06)),
      circle(0, -112, 25, b.own()),
      path("M-36 -76Q-30 -66 -22 -74Q-14 -62 -4 -74Q6 -62 14 -74Q24 -64 38 -76Z", b.own(-0.02)),
      circle(0, -140, 8, b.ink(made.red)) + stroke("M2 -146Q6 -154 13 -156", b.ink(made.leaf), 2),
      stroke("M-14 -118Q-12 -128 -4 -131", b.ink(made.white), 6, opacity(0.45)),
    ].join(""),
};

const bread: Drawing = {
  habitat: "table",
  width: 140,
  height: 76,
  size: 0.24,
  colors: [lch(0.7, 0.11, 65)],
  draw: (b) =>
    path("M-68 -24Q-64 -70 0 -72Q64 -70 68 -24Q66 0 50 0H-50Q-66 0 -68 -24Z", b.own()) +
    path("M-66 -14Q0 -4 66 -14Q62 0 50 0H-50Q-62 0 -66 -14Z", b.own(-0.12)) +
    [-34, -4, 26]
      .map((x) => path(`M${x - 10} -46Q${x + 4} -66 ${x + 18} -62Q${x + 8} -48 ${x - 10} -46Z`, b.own(0.14)))
      .join(""),
};

const pizza: Drawing = {
  habitat: "table",
  width: 120,
  height: 120,
  size: 0.38,
  colors: [lch(0.84, 0.13, 82)],
  draw: (b) =>
    [
      polygon(
        "-54,-104 54,-104 0,0",
        b.own(),
        `stroke="${b.own()}" stroke-width="6" stroke-linejoin="round"`,
      ),
      path("M-30 -60V-34Q-26 -28 -22 -36V-52ZM10 -40V-8Q14 0 18 -12V-36Z", b.own()),
      ...[
        [-20, -82, 12],
        [18, -84, 13],
        [2, -54, 12],
        [0, -26, 8],
      ].map(
        ([x = 0, y = 0, r = 0]) =>
          circle(x, y, r, b.ink(made.red)) + circle(x, y, r * 0.74, b.ink(made.red, 0.06)),
      ),
      ...[
        [-2, -92],
        [-28, -66],
        [22, -62],
      ].map(([x = 0, y = 0]) => ellipse(x, y, 6, 3, b.ink(made.leaf), `transform="rotate(30 ${x} ${y})"`)),
      rect(-64, -118, 128, 20, b.ink(made.wood, 0.14), 10),
    ].join(""),
};

const egg: Drawing = {
  habitat: "table",
  width: 76,
  height: 100,
  size: 0.26,
  colors: [lch(0.93, 0.03, 70), lch(0.86, 0.06, 60)],
  draw: (b) =>
    path("M0 -98Q36 -84 37 -36Q34 0 0 0Q-34 0 -37 -36Q-36 -84 0 -98Z", b.own()) +
    path("M10 -93Q36 -78 37 -36Q34 0 0 0Q34 -34 10 -93Z", b.own(-0.07)) +
    stroke("M-20 -54Q-18 -66 -10 -74", b.ink(made.white), 6, opacity(0.45)),
};

/** Other food, by name. */
export const food = { pumpkin, cake, icecream, bread, pizza, egg };
