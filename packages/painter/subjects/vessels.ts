import { lch } from "../color/color.ts";
import { circle, ellipse, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const sailboat: Drawing = {
  habitat: "water",
  width: 120,
  height: 140,
  size: 0.34,
  colors: [made.white, made.white, lch(0.92, 0.05, 75)],
  draw: (b) =>
    [
      rect(-2, -138, 4, 124, b.ink(made.bark)),
      path("M6 -132Q52 -70 54 -26H6Z", b.own()),
      path("M6 -132Q30 -76 30 -26H6Z", b.own(0.02)),
      path("M-6 -120Q-34 -66 -48 -30Q-26 -26 -6 -28Z", b.own(-0.07)),
      polygon("0,-140 22,-134 0,-128", b.ink(made.red)),
      path("M-60 -18H64Q56 4 40 8H-38Q-54 4 -60 -18Z", b.second(made.brick)),
      path("M-60 -18H64L61 -11H-57Z", b.ink(made.white)),
    ].join(""),
};

const ship: Drawing = {
  habitat: "water",
  width: 250,
  height: 120,
  size: 0.26,
  reach: { top: 50, bottom: 13 },
  colors: [lch(0.4, 0.07, 258), lch(0.5, 0.15, 27)],
  draw: (b) =>
    [
      ...[-26, 18, 60].map(
        (x, i) =>
          [0, 1, 2, 3]
            .map((k) =>
              circle(
                x - 12 - k * 16,
                -112 - k * 11,
                9 + k * 5,
                b.ink(made.white, -0.06),
                opacity(0.5 - k * 0.09),
              ),
            )
            .join("") +
          rect(x - 9, -104, 18, 40, b.second(made.red)) +
          rect(x - 9, -104, 18, 9, b.ink(made.dark)) +
          (i < 0 ? "" : ""),
      ),
      rect(-64, -66, 150, 22, b.ink(made.white)),
      rect(-84, -46, 184, 20, b.ink(made.white, -0.04)),
      rect(44, -82, 34, 18, b.ink(made.white, -0.02), 2),
      ...Array.from({ length: 8 }, (_, i) => rect(-56 + i * 17, -60, 9, 8, b.pane(), 1)),
      ...Array.from({ length: 9 }, (_, i) => circle(-72 + i * 20, -36, 3.4, b.pane())),
      path("M-118 -28H128Q112 4 96 12H-100Q-114 4 -118 -28Z", b.own()),
      path("M-106 2H108Q102 8 96 12H-100Q-104 8 -106 2Z", b.ink(made.red, -0.08)),
      stroke("M-112 -22H122", b.ink(made.white), 2.4),
    ].join(""),
};

const rowboat: Drawing = {
  habitat: "water",
  width: 140,
  height: 50,
  size: 0.15,
  reach: { bottom: 14 },
  colors: [made.wood, made.red, made.teal],
  draw: (b) =>
    [
      stroke("M-10 -20L-46 10M22 -20L56 10", b.ink(made.bark), 3.4),
      path("M-70 -24Q-30 -12 0 -12Q34 -12 72 -26Q62 6 40 10H-38Q-60 6 -70 -24Z", b.own()),
      path("M-70 -24Q-30 -12 0 -12Q34 -12 72 -26Q70 -18 66 -12Q34 -2 0 -2Q-32 -2 -65 -12Z", b.own(0.09)),
      ellipse(-46, 10, 9, 3, b.ink(made.bark)),
      ellipse(56, 10, 9, 3, b.ink(made.bark)),
    ].join(""),
};

const submarine: Drawing = {
  habitat: "underwater",
  width: 190,
  height: 110,
  size: 0.28,
  reach: { top: 11 },
  colors: [made.yellow, made.orange],
  draw: (b) =>
    [
      stroke("M-10 -34V-62H8", b.ink(made.steel), 5),
      path("M-34 -28L-26 -56H24L34 -28Z", b.own(-0.04)),
      path("M-84 6L-104 -22V34Z", b.own(-0.1)),
      ellipse(0, 6, 88, 38, b.own()),
      path("M-86 14A88 38 0 0 0 86 14Q40 30 0 30T-86 14Z", b.own(-0.1)),
      ...[-40, 2, 44].map(
        (x) =>
          circle(x, 2, 14, b.ink(made.steel)) +
          circle(x, 2, 10, b.glow(lch(0.9, 0.09, 200))) +
          path(
            `M${x - 7} ${-1}A8 8 0 0 1 ${x + 1} ${-6}`,
            "none",
            `stroke="${b.ink(made.white)}" stroke-width="2"`,
          ),
      ),
      ellipse(-100, 6, 5, 22, b.ink(made.steel)),
    ].join(""),
};

const balloon: Drawing = {
  habitat: "air",
  width: 120,
  height: 170,
  size: 0.34,
  colors: [made.red, made.orange, lch(0.7, 0.17, 20), made.teal, made.purple],
  draw: (b) => {
    const hull =
      "M0 -85C44 -85 60 -54 58 -30C56 -2 24 26 15 44H-15C-24 26 -56 -2 -58 -30C-60 -54 -44 -85 0 -85Z";
    return [
      stroke("M-13 44L-10 62M13 44L10 62M-4 44L-3 62M4 44L3 62", b.ink(made.bark), 1.2),
      path(hull, b.own()),
      path(
        "M0 -85C26 -85 35 -54 34 -30C33 -2 14 26 9 44H-9C-14 26 -33 -2 -34 -30C-35 -54 -26 -85 0 -85Z",
        b.second(made.cream),
      ),
      path(
        "M0 -85C10 -85 13 -54 12.5 -30C12 -2 5 26 3 44H-3C-5 26 -12 -2 -12.5 -30C-13 -54 -10 -85 0 -85Z",
        b.own(),
      ),
      path(
        "M0 -85C44 -85 60 -54 58 -30C56 -2 24 26 15 44H6C14 20 40 0 42 -30C42 -58 28 -80 0 -85Z",
        b.ink(made.dark),
        opacity(0.13),
      ),
      path("M-12 60H12L10 80H-10Z", b.ink(made.wood)),
      rect(-13, 59, 26, 5, b.ink(made.bark), 2),
    ].join("");
  },
};

const plane: Drawing = {
  habitat: "air",
  width: 200,
  height: 80,
  size: 0.16,
  colors: [made.white, made.red],
  draw: (b) =>
    [
      polygon("-20,-4 16,-4 -34,-40 -52,-40", b.own(-0.1)),
      path("M-92 -6L-98 -40H-80L-60 -10Z", b.second(made.red)),
      path("M-96 -2Q-60 -16 40 -16Q86 -14 98 2Q90 16 40 16H-50Q-84 12 -96 -2Z", b.own()),
      path("M-96 -2Q-40 8 98 2Q90 16 40 16H-50Q-84 12 -96 -2Z", b.own(-0.1)),
      path("M70 -12Q88 -8 94 -2H70Z", b.ink(made.glass, -0.2)),
      ...Array.from({ length: 8 }, (_, i) => circle(-42 + i * 13, -4, 3, b.pane())),
      polygon("-14,4 26,4 -26,42 -46,42", b.second(made.red, -0.03)),
      polygon("-88,0 -70,0 -86,14 -98,14", b.second(made.red, -0.06)),
    ].join(""),
};

const helicopter: Drawing = {
  habitat: "air",
  width: 190,
  height: 90,
  size: 0.2,
  colors: [made.red, made.teal, made.yellow],
  draw: (b) =>
    [
      stroke("M-18 -30V-44M-92 -46H62", b.ink(made.dark), 3.4),
      polygon("-10,-12 -88,-10 -96,-28 -84,-28 -78,-16 0,-24", b.own(-0.07)),
      circle(-92, -22, 13, b.ink(made.dark), opacity(0.25)),
      ellipse(14, 0, 50, 30, b.own()),
      path("M18 -30A50 30 0 0 1 64 2H20Z", b.ink(made.glass)),
      path("M-34 8A50 30 0 0 0 62 8Q20 24 -34 8Z", b.own(-0.1)),
      stroke("M-6 28V40M34 28V40M-26 42H58", b.ink(made.dark), 3.4),
    ].join(""),
};

const rocket: Drawing = {
  habitat: "space",
  width: 90,
  height: 190,
  size: 0.46,
  reach: { bottom: 34 },
  colors: [made.white, made.white, made.red],
  draw: (b) =>
    [
      path("M-18 58Q-26 92 0 128Q26 92 18 58Z", b.glow(made.fire)),
      path("M-10 58Q-14 82 0 104Q14 82 10 58Z", b.glow(made.lamp)),
      path("M-24 20L-46 62Q-30 54 -18 58Z", b.second(made.red)),
      path("M24 20L46 62Q30 54 18 58Z", b.second(made.red, -0.08)),
      path("M0 -96C28 -62 34 -10 20 58H-20C-34 -10 -28 -62 0 -96Z", b.own()),
      path("M0 -96C28 -62 34 -10 20 58H6C16 0 16 -60 0 -96Z", b.own(-0.12)),
      path("M0 -96C12 -82 19 -66 23 -50H-23C-19 -66 -12 -82 0 -96Z", b.second(made.red)),
      circle(0, -18, 14, b.ink(made.steel)),
      circle(0, -18, 10, b.glow(lch(0.82, 0.1, 220))),
      rect(-22, 40, 44, 6, b.second(made.red)),
      rect(-3.5, 30, 7, 32, b.second(made.red, -0.05), 3),
    ].join(""),
};

const ufo: Drawing = {
  habitat: "air",
  width: 170,
  height: 80,
  size: 0.2,
  reach: { left: 11, right: 11, bottom: 150 },
  colors: [made.metal],
  draw: (b) =>
    [
      b.ray("M-40 14H40L96 190H-96Z", lch(0.92, 0.12, 150), 0.5),
      path("M-38 -6A38 40 0 0 1 38 -6Z", b.glow(lch(0.86, 0.1, 180)), opacity(0.9)),
      path(
        "M-26 -12A28 30 0 0 1 -4 -36",
        "none",
        `stroke="${b.ink(made.white)}" stroke-width="4" stroke-linecap="round" stroke-opacity="0.8"`,
      ),
      ellipse(0, 4, 84, 22, b.own()),
      path("M-84 4A84 22 0 0 0 84 4Q40 14 0 14T-84 4Z", b.own(-0.2)),
      ...[-56, -28, 0, 28, 56].map((x) => circle(x, 8 - Math.abs(x) / 14, 5, b.glow(made.lamp))),
    ].join(""),
};

const planet: Drawing = {
  habitat: "space",
  width: 190,
  height: 120,
  size: 0.3,
  colors: [lch(0.76, 0.13, 60), lch(0.62, 0.15, 300), lch(0.66, 0.13, 220), lch(0.7, 0.14, 20)],
  draw: (b) => {
    const bands = [-38, -16, 4, 24].map((y, i) =>
      ellipse(
        0,
        y,
        Math.sqrt(58 ** 2 - y ** 2) - 1,
        6 + (i % 2) * 3,
        b.own(i % 2 === 0 ? -0.08 : 0.06),
        opacity(0.75),
      ),
    );
    const ring = (d: string, width: number, by: number) =>
      `<path d="${d}" fill="none" stroke="${b.second(made.straw, by)}" stroke-width="${width}" transform="rotate(-16)"/>`;
    return [
      ring("M-94 0A94 24 0 0 1 94 0", 9, -0.06),
      circle(0, 0, 58, b.own()),
      ...bands,
      path("M14 -56A58 58 0 0 1 14 56A70 70 0 0 0 14 -56Z", b.ink(made.black), opacity(0.32)),
      ring("M-94 0A94 24 0 0 0 94 0", 9, 0.02),
      ring("M-80 0A80 19 0 0 0 80 0", 3, -0.12),
    ].join("");
  },
};

const satellite: Drawing = {
  habitat: "space",
  width: 200,
  height: 90,
  size: 0.2,
  reach: { bottom: 8 },
  colors: [made.gold, made.metal],
  draw: (b) => {
    const panel = (x: number) =>
      rect(x, -18, 62, 36, b.second(made.blue)) +
      stroke(
        `M${x} 0H${x + 62}M${x + 15.5} -18V18M${x + 31} -18V18M${x + 46.5} -18V18`,
        b.ink(made.metal),
        1.6,
      );
    return `<g transform="rotate(-18)">${stroke("M-40 0H40M0 -24V-44", b.ink(made.steel), 4)}${panel(-98)}${panel(36)}${rect(-24, -28, 48, 56, b.own(), 4)}${rect(4, -28, 20, 56, b.own(-0.12), 4)}${path("M-18 28Q0 56 18 28Z", b.ink(made.white))}${stroke("M0 40V54", b.ink(made.steel), 3)}${circle(0, -46, 5, b.glow(made.red))}</g>`;
  },
};

/** What floats and flies, by name. */
export const vessels = {
  sailboat,
  ship,
  rowboat,
  submarine,
  balloon,
  plane,
  helicopter,
  rocket,
  ufo,
  planet,
  satellite,
};
