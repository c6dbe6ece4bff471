import { lch } from "../color/color.ts";
import { circle, ellipse, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const pagoda: Drawing = {
  habitat: "land",
  width: 160,
  height: 210,
  size: 0.5,
  colors: [lch(0.55, 0.18, 28)],
  draw: (b) => {
    const level = (y: number, half: number) =>
      rect(-half, y - 30, half * 2, 30, b.own()) +
      rect(-half * 0.2, y - 30, half * 1.2, 30, b.own(-0.06)) +
      [-0.55, 0, 0.55].map((at) => rect(at * half - 4, y - 22, 8, 16, b.pane(), 1)).join("") +
      path(
        `M${-half - 24} ${y - 32}Q${-half} ${y - 36} ${-half * 0.62} ${y - 52}H${half * 0.62}Q${half} ${y - 36} ${half + 24} ${y - 32}Q${half + 10} ${y - 26} ${half} ${y - 28}H${-half}Q${-half - 10} ${y - 26} ${-half - 24} ${y - 32}Z`,
        b.second(made.slate, -0.04),
      );
    return [
      rect(-62, -8, 124, 8, b.ink(made.stone)),
      level(-6, 50),
      level(-54, 40),
      level(-102, 30),
      level(-148, 21),
      stroke("M0 -198V-222", b.ink(made.gold), 4),
      circle(0, -206, 4, b.ink(made.gold)),
    ].join("");
  },
};

const torii: Drawing = {
  habitat: "land",
  width: 150,
  height: 130,
  size: 0.42,
  colors: [lch(0.6, 0.2, 32)],
  draw: (b) =>
    [
      polygon("-52,0 -46,-110 -36,-110 -38,0", b.own()),
      polygon("38,0 36,-110 46,-110 52,0", b.own(-0.06)),
      rect(-54, -7, 18, 7, b.ink(made.dark), 1),
      rect(37, -7, 18, 7, b.ink(made.dark), 1),
      rect(-58, -88, 116, 10, b.own(-0.03)),
      rect(-6, -104, 12, 18, b.own(-0.06)),
      path("M-80 -124Q0 -112 80 -124L74 -108Q0 -100 -74 -108Z", b.own()),
      path("M-84 -132Q0 -118 84 -132L80 -123Q0 -111 -80 -123Z", b.ink(made.dark)),
    ].join(""),
};

const pyramid: Drawing = {
  habitat: "desert",
  width: 240,
  height: 140,
  size: 0.46,
  colors: [lch(0.83, 0.1, 75)],
  draw: (b) => {
    const rows = [1, 2, 3, 4, 5, 6, 7].map(
      (i) => `M${-15 * i} ${-140 + 17.5 * i}L${5.7 * i} ${-140 + 17.5 * i}`,
    );
    return (
      polygon("-120,0 0,-140 46,0", b.own()) +
      polygon("0,-140 120,0 46,0", b.own(-0.16)) +
      stroke(rows.join(""), b.own(-0.06), 1.4) +
      polygon("-17,-120 0,-140 6.5,-120", b.own(0.06))
    );
  },
};

const bridge: Drawing = {
  habitat: "water",
  width: 420,
  height: 150,
  size: 0.3,
  colors: [lch(0.58, 0.17, 30), made.stone, made.steel],
  draw: (b) => {
    const hangers: string[] = [];
    for (let x = -84; x <= 84; x += 12) hangers.push(`M${x} ${-42}V${-52 - 84 * (x / 90) ** 2}`);
    for (let x = 0; x < 100; x += 12) {
      const y = -136 + 92 * Math.sqrt(x / 104);
      hangers.push(`M${104 + x} -42V${y}M${-104 - x} -42V${y}`);
    }
    return [
      stroke(hangers.join(""), b.own(0.04), 1.3, opacity(0.9)),
      stroke("M-210 -44Q-150 -60 -96 -138Q0 34 96 -138Q150 -60 210 -44", b.own(), 4),
      ...[-96, 96].map(
        (x) =>
          rect(x - 8, -146, 5, 150, b.own()) +
          rect(x + 3, -146, 5, 150, b.own(-0.08)) +
          [-130, -96, -64].map((y) => rect(x - 8, y, 16, 5, b.own(-0.04))).join(""),
      ),
      rect(-214, -46, 428, 9, b.own(-0.04)),
      rect(-214, -38, 428, 3, b.own(-0.14)),
      ...[-96, 96].map((x) => rect(x - 15, -6, 30, 12, b.ink(made.stone, -0.1), 2)),
    ].join("");
  },
};

const igloo: Drawing = {
  habitat: "snow",
  width: 150,
  height: 74,
  size: 0.24,
  colors: [lch(0.96, 0.02, 225)],
  draw: (b) =>
    [
      path("M-56 0A56 66 0 0 1 56 0Z", b.own()),
      path("M10 -65A56 66 0 0 1 56 0H30Q34 -40 10 -65Z", b.own(-0.07)),
      path(
        "M-52 -22H52M-40 -44H40M-24 -60H24M-30 -22V-44M0 -44V-60M14 -22V-44M-14 -22V0M30 0V-22",
        "none",
        `stroke="${b.own(-0.14)}" stroke-width="2"`,
      ),
      path("M22 0V-14A24 24 0 0 1 70 -14V0Z", b.own(-0.03)),
      path("M32 0V-12A14 15 0 0 1 60 -12V0Z", b.lit ? b.pane() : b.own(-0.42)),
    ].join(""),
};

const well: Drawing = {
  habitat: "land",
  width: 80,
  height: 100,
  size: 0.26,
  colors: [made.stone],
  draw: (b) =>
    [
      rect(-27, -78, 5, 56, b.ink(made.bark)),
      rect(22, -78, 5, 56, b.ink(made.bark)),
      polygon("-42,-68 0,-100 42,-68", b.second(made.tile)),
      stroke("M-24 -56H24M0 -56V-40", b.ink(made.bark), 3),
      path("M-8 -42H8L6 -28H-6Z", b.ink(made.wood)),
      path("M-34 -30H34V0H-34Z", b.own()),
      path(
        "M-34 -20H34M-34 -10H34M-18 -30V-20M4 -30V-20M-26 -20V-10M-6 -20V-10M16 -20V-10M-14 -10V0M10 -10V0",
        "none",
        `stroke="${b.own(-0.14)}" stroke-width="1.6"`,
      ),
      ellipse(0, -30, 34, 5, b.own(-0.1)),
    ].join(""),
};

const fence: Drawing = {
  habitat: "land",
  width: 220,
  height: 46,
  size: 0.13,
  colors: [made.white, made.wood],
  draw: (b) =>
    rect(-110, -34, 220, 5, b.own(-0.06)) +
    rect(-110, -16, 220, 5, b.own(-0.06)) +
    Array.from({ length: 12 }, (_, i) => -104 + i * 19)
      .map((x) => polygon(`${x - 5},0 ${x - 5},-40 ${x},-47 ${x + 5},-40 ${x + 5},0`, b.own()))
      .join(""),
};

const bench: Drawing = {
  habitat: "land",
  width: 120,
  height: 56,
  size: 0.17,
  colors: [made.wood],
  draw: (b) =>
    [
      stroke("M-46 0V-54M46 0V-54M-40 0V-24M40 0V-24", b.ink(made.dark), 4),
      ...[-54, -43, -32].map((y) => rect(-58, y, 116, 8, b.own(), 2)),
      rect(-60, -26, 120, 7, b.own(-0.08), 2),
    ].join(""),
};

const streetlamp: Drawing = {
  habitat: "land",
  width: 60,
  height: 160,
  size: 0.4,
  colors: [made.dark],
  draw: (b) =>
    [
      b.lit ? b.halo(0, -138, 62, made.lamp, 0.7) : "",
      rect(-3, -120, 6, 120, b.own()),
      path("M-11 0L-6 -16H6L11 0Z", b.own()),
      rect(-9, -122, 18, 5, b.own(), 2),
      polygon("-9,-122 -14,-150 14,-150 9,-122", b.lit ? b.glow(made.lamp) : b.ink(made.glass, 0.08)),
      path("M-17 -150Q0 -172 17 -150Z", b.own()),
      stroke("M-9 -122L-14 -150M9 -122L14 -150", b.own(), 2),
    ].join(""),
};

const signpost: Drawing = {
  habitat: "land",
  width: 90,
  height: 110,
  size: 0.28,
  colors: [made.wood],
  draw: (b) =>
    rect(-4, -110, 8, 110, b.ink(made.bark)) +
    polygon("-8,-104 34,-104 44,-93 34,-82 -8,-82", b.own()) +
    polygon("8,-74 -32,-74 -42,-64 -32,-54 8,-54", b.second(made.wood, 0.08)) +
    stroke("M2 -93H30M-28 -64H0", b.ink(made.bark), 2.4, opacity(0.5)),
};

const campfire: Drawing = {
  habitat: "forest",
  width: 90,
  height: 84,
  size: 0.2,
  colors: [made.fire],
  draw: (b) =>
    [
      b.halo(0, -30, 150, made.fire, 0.65),
      path(
        "M-26 -8C-38 -40 -14 -48 -16 -74C4 -62 8 -48 8 -44C12 -50 12 -54 12 -58C28 -40 34 -24 24 -8Z",
        b.glow(b.main),
      ),
      path("M-14 -8C-22 -28 -4 -36 -4 -52C10 -40 20 -26 12 -8Z", b.glow(made.lamp)),
      path("M-6 -8C-9 -20 0 -24 1 -32C8 -24 9 -16 6 -8Z", b.glow(made.white)),
      stroke("M-34 -2L26 -12M34 -2L-26 -12", b.ink(made.bark), 9),
      circle(-34, -2, 4.4, b.ink(made.wood)) + circle(34, -2, 4.4, b.ink(made.wood)),
    ].join(""),
};

/** Landmarks and what stands in the open, by name. */
export const landmarks = {
  pagoda,
  torii,
  pyramid,
  bridge,
  igloo,
  well,
  fence,
  bench,
  streetlamp,
  signpost,
  campfire,
};
