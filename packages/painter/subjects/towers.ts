import { lch } from "../color/color.ts";
import { circle, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const castle: Drawing = {
  habitat: "land",
  width: 220,
  height: 210,
  size: 0.5,
  colors: [made.stone, lch(0.82, 0.04, 75), lch(0.78, 0.04, 300)],
  draw: (b) => {
    const roof = (x: number, y: number, half: number, tall: number) =>
      polygon(`${x - half},${y} ${x},${y - tall} ${x},${y}`, b.second(made.purple, 0.03)) +
      polygon(`${x},${y - tall} ${x + half},${y} ${x},${y}`, b.second(made.purple, -0.06)) +
      stroke(`M${x} ${y - tall}v-16`, b.ink(made.dark), 1.6) +
      polygon(`${x},${y - tall - 16} ${x + 16},${y - tall - 11} ${x},${y - tall - 6}`, b.ink(made.red));
    const tower = (x: number, half: number, tall: number, by: number) =>
      rect(x - half, -tall, half * 2, tall, b.own(by)) +
      rect(x + half * 0.25, -tall, half * 0.75, tall, b.own(by - 0.07)) +
      rect(x - half - 3, -tall - 4, half * 2 + 6, 9, b.own(by - 0.04)) +
      roof(x, -tall - 3, half + 5, half * 2.4) +
      rect(x - 4, -tall + 18, 8, 16, b.pane(), 4);
    const teeth = (from: number, to: number, y: number) => {
      const parts: string[] = [];
      for (let x = from; x < to; x += 14) parts.push(rect(x, y - 8, 8, 9, b.own(-0.02)));
      return parts.join("");
    };
    return [
      tower(-52, 14, 122, -0.05),
      tower(52, 14, 122, -0.05),
      tower(0, 20, 142, -0.02),
      rect(-66, -78, 132, 78, b.own()),
      rect(20, -78, 46, 78, b.own(-0.05)),
      teeth(-66, 64, -78),
      tower(-86, 19, 92, 0.01),
      tower(86, 19, 92, 0.01),
      path("M-18 0V-28A18 20 0 0 1 18 -28V0Z", b.ink(made.bark)),
      path(
        "M-18 0V-28A18 20 0 0 1 18 -28V0M0 0V-48M-18 -20H18",
        "none",
        `stroke="${b.ink(made.dark)}" stroke-width="2"`,
      ),
      ...[-44, 36].map((x) => rect(x, -52, 9, 17, b.pane(), 4.5)),
    ].join("");
  },
};

const lighthouse: Drawing = {
  habitat: "water",
  width: 90,
  height: 205,
  size: 0.5,
  reach: { right: 32 },
  colors: [made.red, made.red, made.blue],
  draw: (b) => {
    return [
      b.lit ? b.beams(0, -176, 520, made.lamp) : "",
      polygon("-30,0 -20,-154 20,-154 30,0", b.ink(made.white)),
      polygon("-27.4,-40 -24.8,-80 24.8,-80 27.4,-40", b.own()),
      polygon("-22.6,-114 -20,-154 20,-154 22.6,-114", b.own()),
      polygon("8,0 6,-154 20,-154 30,0", b.ink(made.dark), opacity(0.15)),
      rect(-27, -160, 54, 7, b.ink(made.dark)),
      rect(-15, -186, 30, 26, b.lit ? b.glow(made.lamp) : b.ink(made.glass)),
      stroke("M-15 -186V-160M-5 -186V-160M5 -186V-160M15 -186V-160", b.ink(made.dark), 2),
      path("M-19 -185Q-14 -202 0 -205Q14 -202 19 -185Z", b.own(-0.06)),
      circle(0, -207, 3, b.ink(made.dark)),
      path("M-9 0V-20A9 9 0 0 1 9 -20V0Z", b.ink(made.bark)),
      rect(-5, -104, 10, 14, b.pane(), 5),
      rect(-5, -66, 10, 14, b.pane(), 5),
      rect(26, -30, 44, 30, b.ink(made.white, -0.04)),
      polygon("20,-28 48,-50 76,-28", b.own()),
      rect(42, -22, 12, 11, b.pane()),
    ].join("");
  },
};

const windmill: Drawing = {
  habitat: "land",
  width: 180,
  height: 190,
  size: 0.44,
  colors: [made.cream, made.white, lch(0.74, 0.06, 50)],
  draw: (b) => {
    const blade = (angle: number) =>
      `<g transform="translate(0 -118) rotate(${angle})">${rect(-1.8, -82, 3.6, 82, b.ink(made.bark))}${rect(2, -80, 17, 58, b.ink(made.white), 1)}${stroke("M2 -66H19M2 -51H19M2 -36H19M10 -80V-22", b.ink(made.bark), 1)}</g>`;
    return [
      polygon("-38,0 -24,-104 24,-104 38,0", b.own()),
      polygon("10,0 8,-104 24,-104 38,0", b.own(-0.08)),
      path("M-28 -102Q-24 -136 0 -138Q24 -136 28 -102Z", b.second(made.brick, -0.04)),
      rect(-36, -44, 72, 5, b.ink(made.bark)),
      path("M-10 0V-24A10 10 0 0 1 10 -24V0Z", b.ink(made.bark)),
      rect(-6, -80, 12, 16, b.pane(), 5),
      ...[22, 112, 202, 292].map(blade),
      circle(0, -118, 6, b.ink(made.dark)),
    ].join("");
  },
};

const turbine: Drawing = {
  habitat: "land",
  width: 130,
  height: 215,
  size: 0.5,
  colors: [made.white],
  draw: (b) =>
    polygon("-5,0 -2.4,-150 2.4,-150 5,0", b.own()) +
    polygon("1,0 0.6,-150 2.4,-150 5,0", b.own(-0.12)) +
    [14, 134, 254]
      .map(
        (angle) =>
          `<g transform="translate(0 -150) rotate(${angle})">${path("M-3 0Q-7 -20 0 -70Q4 -22 3 0Z", b.own(-0.03))}</g>`,
      )
      .join("") +
    circle(0, -150, 5, b.own(-0.12)),
};

const tower: Drawing = {
  habitat: "land",
  width: 90,
  height: 200,
  size: 0.5,
  colors: [made.stone, lch(0.78, 0.05, 70)],
  draw: (b) => {
    const teeth = [-30, -15, 0, 15].map((x) => rect(x, -160, 10, 13, b.own(-0.03)));
    const stones = Array.from({ length: 18 }, () =>
      rect(b.random.range(-24, 14), b.random.range(-140, -8), b.random.range(7, 12), 4, b.own(-0.08), 1.5),
    );
    return [
      polygon("-30,0 -25,-150 25,-150 30,0", b.own()),
      polygon("8,0 7,-150 25,-150 30,0", b.own(-0.08)),
      ...stones,
      rect(-31, -150, 62, 12, b.own(-0.05)),
      ...teeth,
      polygon("-22,-160 0,-200 22,-160", b.second(made.slate)),
      path("M-10 0V-24A10 12 0 0 1 10 -24V0Z", b.ink(made.bark)),
      ...[-118, -80].map((y) => rect(-4, y, 8, 18, b.pane(), 4)),
    ].join("");
  },
};

/** Buildings that rise high, by name. */
export const towers = { castle, lighthouse, windmill, turbine, tower };
