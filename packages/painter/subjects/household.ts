import { lch } from "../color/color.ts";
import { circle, ellipse, opacity, path, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const glazes = [lch(0.62, 0.13, 30), lch(0.6, 0.1, 220), made.cream, lch(0.72, 0.1, 165), lch(0.8, 0.12, 80)];

const cup: Drawing = {
  habitat: "table",
  width: 120,
  height: 84,
  size: 0.28,
  reach: { top: 60 },
  colors: glazes,
  draw: (b) =>
    [
      stroke(
        "M-14 -92C-26 -108 -2 -116 -14 -136M8 -94C-4 -110 20 -120 8 -142M28 -92C18 -106 38 -114 28 -130",
        b.ink(made.white),
        4,
        opacity(0.5),
      ),
      ellipse(0, -4, 64, 9, b.ink(made.white, -0.05)) + ellipse(0, -6, 46, 5, b.ink(made.white, -0.13)),
      stroke("M40 -64C74 -70 74 -26 34 -28", b.own(-0.06), 9),
      path("M-46 -78H46Q46 -8 14 -6H-14Q-46 -8 -46 -78Z", b.own()),
      path("M18 -78H46Q46 -8 14 -6Q34 -30 18 -78Z", b.own(-0.08)),
      path(
        "M-38 -66Q-38 -32 -24 -18",
        "none",
        `stroke="${b.own(0.12)}" stroke-width="5" stroke-linecap="round"`,
      ),
      ellipse(0, -78, 46, 10, b.own(0.07)),
      ellipse(0, -77, 39, 7, b.second(lch(0.42, 0.07, 50))),
    ].join(""),
};

const teapot: Drawing = {
  habitat: "table",
  width: 170,
  height: 112,
  size: 0.36,
  colors: glazes,
  draw: (b) =>
    [
      path(
        "M-50 -76C-96 -86 -98 -20 -48 -24",
        "none",
        `stroke="${b.own(-0.07)}" stroke-width="11" stroke-linecap="round"`,
      ),
      path("M44 -36Q66 -36 70 -62Q74 -78 90 -82L98 -74Q86 -68 84 -50Q80 -16 44 -14Z", b.own(-0.05)),
      path("M-56 -42Q-56 -84 0 -84Q56 -84 56 -42Q52 -4 26 -4H-26Q-52 -4 -56 -42Z", b.own()),
      path("M20 -82Q56 -76 56 -42Q52 -4 26 -4H8Q44 -26 20 -82Z", b.own(-0.07)),
      path(
        "M-44 -50Q-42 -68 -24 -74",
        "none",
        `stroke="${b.own(0.13)}" stroke-width="6" stroke-linecap="round"`,
      ),
      ellipse(0, -83, 30, 7, b.own(-0.1)),
      path("M-28 -84Q-20 -100 0 -100Q20 -100 28 -84Z", b.own(0.03)),
      circle(0, -105, 7, b.second(made.gold)),
      ...[-28, 0, 28].map(
        (x) => circle(x, -38, 6, b.second(made.cream)) + circle(x, -38, 2.6, b.second(made.gold)),
      ),
      rect(-28, -6, 56, 6, b.own(-0.12), 3),
    ].join(""),
};

const bottle: Drawing = {
  habitat: "table",
  width: 54,
  height: 160,
  size: 0.46,
  colors: [lch(0.42, 0.09, 150), lch(0.5, 0.12, 30), lch(0.6, 0.1, 220)],
  draw: (b) =>
    [
      rect(-9, -160, 18, 16, b.ink(made.wood)),
      path("M-10 -148H10V-112Q10 -98 25 -90V-8Q25 0 17 0H-17Q-25 0 -25 -8V-90Q-10 -98 -10 -112Z", b.own()),
      path("M4 -148H10V-112Q10 -98 25 -90V-8Q25 0 17 0H9Z", b.own(-0.06)),
      rect(-25, -72, 50, 40, b.second(made.cream)),
      rect(-16, -62, 32, 4, b.ink(made.gold)) + rect(-11, -52, 22, 3, b.ink(made.wood)),
      stroke("M-18 -84V-78M-5 -140V-116", b.own(0.2), 4, opacity(0.8)),
    ].join(""),
};

const wineglass: Drawing = {
  habitat: "table",
  width: 70,
  height: 130,
  size: 0.4,
  colors: [lch(0.42, 0.15, 20), lch(0.86, 0.1, 95)],
  draw: (b) =>
    [
      ellipse(0, -3, 28, 5, b.ink(made.glass, 0.08), opacity(0.85)),
      rect(-2.5, -58, 5, 56, b.ink(made.glass, 0.06), 0, opacity(0.85)),
      path("M-30 -128Q-36 -62 0 -56Q36 -62 30 -128Z", b.ink(made.glass, 0.1), opacity(0.4)),
      path("M-31.5 -96Q-30 -62 0 -59Q30 -62 31.5 -96Z", b.own()),
      ellipse(0, -96, 31.5, 5, b.own(0.08)),
      stroke("M-22 -118Q-24 -84 -14 -72", b.ink(made.white), 4, opacity(0.6)),
      ellipse(0, -128, 30, 4, b.ink(made.white), opacity(0.35)),
    ].join(""),
};

const vase: Drawing = {
  habitat: "table",
  width: 110,
  height: 190,
  size: 0.56,
  colors: glazes,
  draw: (b) => {
    const blooms = [
      [-34, -148, 15],
      [30, -152, 16],
      [0, -172, 18],
      [-12, -136, 13],
      [18, -130, 12],
    ] as const;
    const hues = [
      lch(0.7, 0.19, 22),
      lch(0.86, 0.15, 88),
      lch(0.8, 0.12, 355),
      lch(0.66, 0.15, 300),
      lch(0.95, 0.03, 90),
    ];
    const flowers = blooms.map(([x, y, r], i) => {
      const hue = hues[(i + b.random.int(0, 4)) % hues.length] ?? made.red;
      const petals = [0, 60, 120, 180, 240, 300].map((a) =>
        circle(
          x + Math.cos((a * Math.PI) / 180) * r * 0.62,
          y + Math.sin((a * Math.PI) / 180) * r * 0.62,
          r * 0.52,
          b.second(hue, a % 120 === 0 ? 0 : -0.06),
        ),
      );
      return (
        stroke(`M0 -84Q${x * 0.3} -110 ${x} ${y}`, b.ink(made.leaf, -0.05), 3.4) +
        petals.join("") +
        circle(x, y, r * 0.36, b.ink(made.gold))
      );
    });
    return [
      path("M0 -90Q-34 -106 -46 -128Q-14 -126 0 -90ZM0 -90Q38 -96 48 -118Q18 -122 0 -90Z", b.ink(made.leaf)),
      ...flowers,
      path("M-17 -92H17Q14 -76 28 -60Q46 -30 24 -2Q0 3 -24 -2Q-46 -30 -28 -60Q-14 -76 -17 -92Z", b.own()),
      path("M6 -92H17Q14 -76 28 -60Q46 -30 24 -2Q16 1 8 1Q32 -34 6 -92Z", b.own(-0.08)),
      path("M-38 -40Q0 -32 38 -40M-37 -30Q0 -22 37 -30", "none", `stroke="${b.own(0.14)}" stroke-width="3"`),
      ellipse(0, -92, 17, 4, b.own(-0.16)),
    ].join("");
  },
};

const plant: Drawing = {
  habitat: "table",
  width: 120,
  height: 150,
  size: 0.5,
  colors: [lch(0.64, 0.13, 42), made.cream],
  draw: (b) => {
    const leaf = (angle: number, length: number, by: number) =>
      `<g transform="translate(0 -52) rotate(${angle})">${path(`M0 0C-22 ${-length * 0.3} -18 ${-length * 0.8} 0 ${-length}C18 ${-length * 0.8} 22 ${-length * 0.3} 0 0Z`, b.second(made.leaf, by))}${stroke(`M0 0V${-length * 0.85}`, b.second(made.leaf, by + 0.1), 2)}</g>`;
    return [
      leaf(-64, 70, -0.1),
      leaf(62, 72, -0.12),
      leaf(-36, 90, -0.04),
      leaf(34, 92, -0.07),
      leaf(-10, 98, 0.02),
      leaf(12, 86, 0.05),
      path("M-34 -48H34L26 0H-26Z", b.own()),
      path("M8 -48H34L26 0H12Z", b.own(-0.08)),
      rect(-38, -58, 76, 14, b.own(0.04), 3),
    ].join("");
  },
};

/** Vessels and plants of the house, by name. */
export const household = { cup, teapot, bottle, wineglass, vase, plant };
