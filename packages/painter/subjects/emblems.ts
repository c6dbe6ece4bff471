import { lch } from "../color/color.ts";
import { circle, ellipse, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const heart: Drawing = {
  habitat: "studio",
  width: 130,
  height: 120,
  size: 0.5,
  colors: [made.red, lch(0.68, 0.2, 5)],
  draw: (b) =>
    path(
      "M0 0C-76 -46 -70 -112 -34 -116C-14 -118 -2 -104 0 -94C2 -104 14 -118 34 -116C70 -112 76 -46 0 0Z",
      b.own(),
    ) +
    path("M0 0C60 -50 62 -96 34 -116C70 -112 76 -46 0 0Z", b.own(-0.09)) +
    path(
      "M-44 -70Q-46 -92 -30 -98",
      "none",
      `stroke="${b.own(0.2)}" stroke-width="8" stroke-linecap="round"`,
    ),
};

function starPoints(outer: number, inner: number, cy: number): string {
  return Array.from({ length: 10 }, (_, i) => {
    const [r, a] = [i % 2 === 0 ? outer : inner, (i / 10) * Math.PI * 2 - Math.PI / 2];
    return `${(Math.cos(a) * r).toFixed(1)},${(cy + Math.sin(a) * r).toFixed(1)}`;
  }).join(" ");
}

const star: Drawing = {
  habitat: "studio",
  width: 130,
  height: 124,
  size: 0.5,
  colors: [lch(0.87, 0.16, 88)],
  draw: (b) => {
    const facets = Array.from({ length: 5 }, (_, i) => {
      const [a, c] = [(i / 5) * Math.PI * 2 - Math.PI / 2, ((i + 0.5) / 5) * Math.PI * 2 - Math.PI / 2];
      return polygon(
        `0,-60 ${(Math.cos(a) * 64).toFixed(1)},${(-60 + Math.sin(a) * 64).toFixed(1)} ${(Math.cos(c) * 27).toFixed(1)},${(-60 + Math.sin(c) * 27).toFixed(1)}`,
        b.own(-0.1),
      );
    });
    return (
      polygon(
        starPoints(64, 27, -60),
        b.own(),
        `stroke="${b.own()}" stroke-width="6" stroke-linejoin="round"`,
      ) + facets.join("")
    );
  },
};

const crown: Drawing = {
  habitat: "studio",
  width: 140,
  height: 104,
  size: 0.42,
  reach: { top: 11 },
  colors: [made.gold],
  draw: (b) =>
    [
      polygon(
        "-60,-20 -66,-82 -34,-52 0,-102 34,-52 66,-82 60,-20",
        b.own(),
        `stroke="${b.own()}" stroke-width="5" stroke-linejoin="round"`,
      ),
      polygon("0,-102 34,-52 66,-82 60,-20 10,-20", b.own(-0.08)),
      rect(-63, -24, 126, 24, b.own(-0.04), 5),
      ...[
        [-66, -86],
        [0, -107],
        [66, -86],
      ].map(([x = 0, y = 0]) => circle(x, y, 8, b.second(made.red))),
      ...[-40, 0, 40].map((x, i) =>
        polygon(
          `${x},-21 ${x + 9},-12 ${x},-3 ${x - 9},-12`,
          b.second([made.teal, made.red, made.teal][i] ?? made.red),
        ),
      ),
    ].join(""),
};

const diamond: Drawing = {
  habitat: "studio",
  width: 130,
  height: 112,
  size: 0.46,
  reach: { left: 24, right: 24 },
  colors: [lch(0.84, 0.1, 215), lch(0.75, 0.15, 330), lch(0.76, 0.14, 160)],
  draw: (b) =>
    [
      polygon("-62,-74 -36,-110 36,-110 62,-74 0,0", b.own()),
      polygon("-62,-74 -36,-110 -22,-74", b.own(0.08)) +
        polygon("-36,-110 0,-110 -22,-74", b.own(0.02)) +
        polygon("0,-110 22,-74 -22,-74", b.own(0.11)) +
        polygon("0,-110 36,-110 22,-74", b.own(-0.03)) +
        polygon("36,-110 62,-74 22,-74", b.own(-0.09)),
      polygon("-62,-74 -22,-74 0,0", b.own(-0.04)) +
        polygon("-22,-74 22,-74 0,0", b.own(0.05)) +
        polygon("22,-74 62,-74 0,0", b.own(-0.14)),
      stroke("M74 -116V-92M62 -104H86M-78 -58V-44M-85 -51H-71", b.ink(made.white), 4),
    ].join(""),
};

const guitar: Drawing = {
  habitat: "studio",
  width: 90,
  height: 220,
  size: 0.68,
  reach: { left: 10, right: 13 },
  colors: [lch(0.68, 0.13, 60), lch(0.55, 0.15, 32)],
  draw: (b) =>
    `<g transform="rotate(14 0 -60)">${[
      rect(-8, -190, 16, 116, b.ink(made.bark)),
      path("M-13 -222H13L10 -188H-10Z", b.ink(made.bark, -0.06)),
      ...[-214, -202].flatMap((y) => [-17, 17].map((x) => circle(x, y, 4, b.ink(made.metal)))),
      path(
        "M0 -104Q38 -106 36 -78Q32 -62 44 -44Q58 -2 0 0Q-58 -2 -44 -44Q-32 -62 -36 -78Q-38 -106 0 -104Z",
        b.own(),
      ),
      path(
        "M10 -104Q38 -104 36 -78Q32 -62 44 -44Q58 -2 0 0Q44 -20 30 -48Q16 -70 24 -86Q22 -100 10 -104Z",
        b.own(-0.1),
      ),
      circle(0, -62, 15, b.ink(made.black)) +
        `<circle cx="0" cy="-62" r="18" fill="none" stroke="${b.ink(made.cream)}" stroke-width="2.4"/>`,
      rect(-17, -28, 34, 8, b.ink(made.bark, -0.06), 2),
      stroke("M-5 -212V-24M-1.6 -212V-24M1.6 -212V-24M5 -212V-24", b.ink(made.metal), 0.9),
      stroke("M-8 -174H8M-8 -156H8M-8 -138H8M-8 -120H8", b.ink(made.metal), 1.2),
    ].join("")}</g>`,
};

const umbrella: Drawing = {
  habitat: "land",
  width: 150,
  height: 140,
  size: 0.4,
  colors: [made.red, made.yellow, made.teal],
  draw: (b) =>
    [
      stroke("M0 -126V-14Q0 0 -10 0Q-20 0 -20 -12", b.ink(made.bark), 5),
      path(
        "M-74 -62Q-70 -130 0 -132Q70 -130 74 -62Q62 -76 50 -62Q37 -76 25 -62Q12 -76 0 -62Q-12 -76 -25 -62Q-37 -76 -50 -62Q-62 -76 -74 -62Z",
        b.own(),
      ),
      path("M0 -132Q-28 -110 -25 -62Q-12 -76 0 -62Q12 -76 25 -62Q28 -110 0 -132Z", b.second(made.cream)),
      path("M0 -132Q70 -130 74 -62Q62 -76 50 -62Q52 -116 0 -132Z", b.own(-0.07)),
      stroke("M0 -132V-140", b.ink(made.bark), 5),
    ].join(""),
};

const kite: Drawing = {
  habitat: "air",
  width: 100,
  height: 150,
  size: 0.28,
  reach: { bottom: 78 },
  colors: [made.red, made.orange, made.purple],
  draw: (b) =>
    [
      stroke("M0 52Q-26 80 -4 104T-20 150", b.ink(made.dark), 2),
      polygon("0,-70 44,-12 0,52 -44,-12", b.own()),
      polygon("0,-70 44,-12 0,-12", b.second(made.yellow)) +
        polygon("0,52 -44,-12 0,-12", b.second(made.yellow, -0.04)),
      stroke("M0 -70V52M-44 -12H44", b.ink(made.bark), 2),
      ...[
        [-12, 80],
        [-6, 108],
        [-16, 132],
      ].map(
        ([x = 0, y = 0]) =>
          polygon(`${x},${y} ${x - 12},${y - 7} ${x - 12},${y + 7}`, b.own()) +
          polygon(`${x},${y} ${x + 12},${y - 7} ${x + 12},${y + 7}`, b.second(made.yellow)),
      ),
    ].join(""),
};

const key: Drawing = {
  habitat: "studio",
  width: 160,
  height: 70,
  size: 0.26,
  reach: { bottom: 14 },
  colors: [made.gold],
  draw: (b) =>
    `<g transform="translate(0 -34) rotate(-20)"><circle cx="-48" cy="0" r="24" fill="none" stroke="${b.own()}" stroke-width="13"/>${rect(-24, -6, 104, 12, b.own(), 3)}${rect(52, 4, 9, 20, b.own(-0.06))}${rect(68, 4, 9, 26, b.own(-0.06))}${rect(-24, 1, 104, 5, b.own(-0.1), 2)}</g>`,
};

const gift: Drawing = {
  habitat: "table",
  width: 120,
  height: 120,
  size: 0.38,
  colors: [made.red, made.teal, made.purple],
  draw: (b) =>
    [
      path("M0 -84Q-40 -126 -46 -98Q-44 -84 0 -84ZM0 -84Q40 -126 46 -98Q44 -84 0 -84Z", b.second(made.gold)),
      path(
        "M-4 -86Q-28 -106 -34 -98Q-32 -90 -4 -86ZM4 -86Q28 -106 34 -98Q32 -90 4 -86Z",
        b.second(made.gold, -0.14),
      ),
      rect(-50, -66, 100, 66, b.own(), 3) + rect(14, -66, 36, 66, b.own(-0.06), 3),
      rect(-57, -84, 114, 24, b.own(0.04), 4),
      rect(-9, -84, 18, 84, b.second(made.gold)),
    ].join(""),
};

const hat: Drawing = {
  habitat: "table",
  width: 140,
  height: 76,
  size: 0.28,
  colors: [made.straw, made.dark],
  draw: (b) =>
    ellipse(0, -10, 70, 13, b.own()) +
    path("M-38 -14Q-40 -72 0 -74Q40 -72 38 -14Q0 -4 -38 -14Z", b.own(0.02)) +
    path("M12 -73Q40 -68 38 -14Q28 -10 20 -9Q30 -50 12 -73Z", b.own(-0.06)) +
    path("M-38 -26Q0 -16 38 -26V-13Q0 -3 -38 -13Z", b.second(made.red)),
};

const camera: Drawing = {
  habitat: "table",
  width: 140,
  height: 100,
  size: 0.34,
  colors: [made.dark, lch(0.66, 0.12, 30), made.teal],
  draw: (b) =>
    [
      path("M-28 -80L-20 -98H20L28 -80Z", b.own(0.03)),
      rect(-66, -82, 132, 80, b.own(), 10) + rect(-66, -62, 132, 34, b.second(made.bark)),
      rect(-54, -90, 20, 9, b.ink(made.metal), 3) + rect(38, -76, 18, 11, b.ink(made.glass), 2),
      circle(0, -44, 33, b.ink(made.metal)) +
        circle(0, -44, 27, b.ink(made.black)) +
        circle(0, -44, 18, b.ink(lch(0.4, 0.1, 265))),
      circle(-7, -51, 6, b.ink(made.white), opacity(0.8)) +
        circle(7, -37, 3, b.ink(made.white), opacity(0.5)),
    ].join(""),
};

const anchor: Drawing = {
  habitat: "studio",
  width: 110,
  height: 140,
  size: 0.56,
  colors: [lch(0.42, 0.07, 255)],
  draw: (b) =>
    `<circle cx="0" cy="-122" r="13" fill="none" stroke="${b.own()}" stroke-width="8"/>${stroke("M0 -108V-8M-26 -88H26", b.own(), 10)}${path("M-54 -50L-30 -44Q-34 -14 0 -10Q34 -14 30 -44L54 -50Q50 2 0 6Q-50 2 -54 -50Z", b.own())}${polygon("-62,-40 -46,-66 -30,-42", b.own())}${polygon("62,-40 46,-66 30,-42", b.own(-0.05))}`,
};

const bell: Drawing = {
  habitat: "studio",
  width: 110,
  height: 120,
  size: 0.48,
  colors: [made.gold],
  draw: (b) =>
    [
      stroke("M0 -112V-102", b.own(-0.1), 9) + circle(0, -6, 11, b.own(-0.16)),
      path("M0 -106Q34 -102 36 -56Q38 -32 54 -18H-54Q-38 -32 -36 -56Q-34 -102 0 -106Z", b.own()),
      path("M8 -105Q34 -100 36 -56Q38 -32 54 -18H22Q24 -80 8 -105Z", b.own(-0.08)),
      rect(-58, -22, 116, 12, b.own(0.03), 6),
      path(
        "M-22 -56Q-20 -80 -10 -90",
        "none",
        `stroke="${b.own(0.13)}" stroke-width="6" stroke-linecap="round"`,
      ),
    ].join(""),
};

const feather: Drawing = {
  habitat: "studio",
  width: 90,
  height: 160,
  size: 0.6,
  reach: { right: 17 },
  colors: [lch(0.62, 0.12, 240), lch(0.7, 0.14, 340), made.white],
  draw: (b) =>
    `<g transform="rotate(18)">${path("M0 -158Q44 -110 28 -56L16 -62L22 -46L8 -34L12 -24L0 -16Z", b.own(-0.07))}${path("M0 -158Q-42 -104 -28 -48L-16 -54L-18 -36L-6 -30L0 -16Z", b.own())}${stroke("M0 -150V2", b.own(0.2), 3)}${stroke("M0 -120L20 -132M0 -98L26 -112M0 -76L24 -90M0 -104L-20 -118M0 -82L-26 -98M0 -60L-24 -74", b.own(0.12), 1.4)}</g>`,
};

/** Things that stand for something, by name. */
export const emblems = {
  heart,
  star,
  crown,
  diamond,
  guitar,
  umbrella,
  kite,
  key,
  gift,
  hat,
  camera,
  anchor,
  bell,
  feather,
};
