import { lch } from "../../color/color.ts";
import { circle, ellipse, opacity, path, polygon, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";

function eye(b: Brush, x: number, y: number, size: number): string {
  return (
    circle(x, y, size, b.ink(made.white)) +
    circle(x + size * 0.15, y, size * 0.6, b.ink(made.black)) +
    circle(x + size * 0.35, y - size * 0.3, size * 0.2, b.ink(made.white))
  );
}

const fish: Drawing = {
  habitat: "underwater",
  width: 130,
  height: 80,
  size: 0.2,
  colors: [made.orange, made.yellow, lch(0.68, 0.18, 20), lch(0.7, 0.14, 250), made.purple],
  draw: (b) =>
    [
      path("M-36 0Q-62 -34 -72 -28Q-62 0 -72 28Q-62 34 -36 0Z", b.own(-0.06)),
      path("M-20 -26Q0 -52 26 -44Q20 -36 22 -28Z", b.own(-0.08)),
      path("M-44 0Q-10 -42 30 -32Q60 -20 62 2Q56 24 26 32Q-12 40 -44 0Z", b.own()),
      path("M-44 0Q-12 40 26 32Q56 24 62 2Q40 18 10 16T-44 0Z", b.own(0.08)),
      path(
        "M14 -35Q6 -2 16 35Q26 34 30 31Q20 0 28 -32ZM-16 -28Q-22 0 -14 27L-6 30Q-12 0 -8 -32Z",
        b.second(made.white),
      ),
      path("M4 6Q-14 14 -16 24Q0 26 12 12Z", b.own(-0.1)),
      eye(b, 42, -8, 7),
      path("M60 8Q54 12 50 10", "none", `stroke="${b.own(-0.25)}" stroke-width="2.4" stroke-linecap="round"`),
    ].join(""),
};

const whale: Drawing = {
  habitat: "underwater",
  width: 250,
  height: 120,
  size: 0.3,
  reach: { top: 29 },
  colors: [lch(0.5, 0.1, 250), lch(0.45, 0.08, 262)],
  draw: (b) =>
    [
      path("M-84 6Q-118 -14 -130 -52Q-112 -48 -102 -32Q-96 -54 -78 -60Q-80 -36 -72 -10Z", b.own(-0.03)),
      path("M-88 -4Q-50 -56 30 -56Q112 -52 120 4Q112 44 40 46Q-48 44 -88 -4Z", b.own()),
      path("M-58 26Q0 22 40 14Q86 6 119 10Q110 44 40 46Q-20 46 -58 26Z", b.ink(made.white, -0.04)),
      stroke("M30 24Q64 20 108 24M24 32Q60 30 98 33M16 40Q50 39 84 40", b.own(0.16), 2),
      path("M28 22Q10 60 -14 66Q-10 38 4 22Z", b.own(-0.08)),
      path("M119 8Q100 14 84 8", "none", `stroke="${b.own(-0.2)}" stroke-width="2.6" stroke-linecap="round"`),
      eye(b, 82, -6, 5),
      path(
        "M56 -58Q50 -84 34 -86M58 -58Q64 -86 80 -86",
        "none",
        `stroke="${b.ink(made.white)}" stroke-width="5" stroke-linecap="round" stroke-opacity="0.8"`,
      ),
    ].join(""),
};

const dolphin: Drawing = {
  habitat: "underwater",
  width: 190,
  height: 96,
  size: 0.24,
  reach: { top: 17, bottom: 22 },
  colors: [lch(0.66, 0.06, 245)],
  draw: (b) =>
    [
      path("M-2 -38Q-14 -66 -32 -64Q-24 -48 -26 -34Z", b.own(-0.06)),
      path("M-66 30Q-96 30 -108 52Q-86 50 -76 46Q-78 62 -66 70Q-58 48 -58 34Z", b.own(-0.06)),
      path("M-74 40Q-56 -34 12 -40Q58 -40 72 -10L98 -2Q100 6 92 8Q60 14 30 12Q-34 8 -74 40Z", b.own()),
      path("M70 2Q40 14 12 4Q-30 -4 -66 34Q-34 8 30 12Q66 14 94 8Z", b.ink(made.white, -0.03)),
      path("M20 6Q14 32 -6 38Q-6 20 4 4Z", b.own(-0.09)),
      circle(60, -10, 3, b.ink(made.black)),
      path("M72 2Q84 4 96 2", "none", `stroke="${b.own(-0.2)}" stroke-width="2" stroke-linecap="round"`),
    ].join(""),
};

const shark: Drawing = {
  habitat: "underwater",
  width: 220,
  height: 100,
  size: 0.26,
  reach: { top: 20, bottom: 10 },
  colors: [lch(0.58, 0.04, 250)],
  draw: (b) =>
    [
      path("M-80 -4Q-112 -30 -124 -54Q-98 -44 -88 -22Q-96 10 -114 26Q-92 22 -76 4Z", b.own(-0.05)),
      path("M-8 -30Q-14 -66 -38 -70Q-34 -46 -40 -26Z", b.own(-0.05)),
      path("M-88 0Q-30 -36 40 -32Q92 -26 116 2Q96 22 40 28Q-30 24 -88 0Z", b.own()),
      path("M-70 5Q0 8 50 4Q92 0 115 2Q96 22 40 28Q-20 26 -70 5Z", b.ink(made.white, -0.03)),
      path("M30 18Q16 50 -12 58Q-8 34 4 16Z", b.own(-0.09)),
      stroke("M44 -12Q40 0 44 10M52 -12Q48 0 52 10M60 -11Q57 0 60 9", b.own(-0.15), 2.2),
      path(
        "M112 6Q96 8 84 14L88 8L92 12L96 6L101 10L104 5Z",
        b.ink(made.white),
        `stroke="${b.own(-0.25)}" stroke-width="1.2"`,
      ),
      circle(86, -9, 4, b.ink(made.black)),
    ].join(""),
};

const octopus: Drawing = {
  habitat: "underwater",
  width: 160,
  height: 150,
  size: 0.4,
  colors: [lch(0.62, 0.19, 18), made.purple, made.orange],
  draw: (b) => {
    const arms = [-62, -40, -18, 18, 40, 62].map((x, i) => {
      const s = Math.sign(x);
      const reach = x * 1.05;
      return (
        stroke(
          `M${x * 0.5} 8C${x * 0.8} 44 ${reach - s * 18} 42 ${reach} 66Q${reach + s * 12} 80 ${reach + s * 20} 62`,
          b.own(i % 2 === 0 ? -0.05 : 0),
          15,
        ) +
        stroke(
          `M${x * 0.55} 24C${x * 0.8} 44 ${reach - s * 16} 46 ${reach - s * 2} 64`,
          b.own(0.13),
          3.4,
          'stroke-dasharray="0.1 9"',
        )
      );
    });
    return [
      ...arms,
      path("M-44 14Q-62 -74 0 -78Q62 -74 44 14Q20 30 0 26T-44 14Z", b.own()),
      path("M12 -76Q62 -66 44 14Q34 22 24 24Q52 -30 12 -76Z", b.own(-0.06)),
      ...[
        [-24, -54, 6],
        [-8, -62, 4],
        [26, -48, 5],
      ].map(([x = 0, y = 0, r = 0]) => circle(x, y, r, b.own(0.1))),
      eye(b, -17, -14, 12),
      eye(b, 17, -14, 12),
      path("M-9 6Q0 13 9 6", "none", `stroke="${b.own(-0.25)}" stroke-width="3" stroke-linecap="round"`),
    ].join("");
  },
};

const jellyfish: Drawing = {
  habitat: "underwater",
  width: 110,
  height: 160,
  size: 0.36,
  reach: { bottom: 16 },
  colors: [lch(0.8, 0.13, 330), lch(0.82, 0.11, 280), lch(0.85, 0.1, 200)],
  draw: (b) => {
    const shine = b.glow(b.main);
    const arms = [-34, -22, -10, 2, 14, 26, 36].map((x, i) =>
      stroke(
        `M${x} -22C${x - 12} 8 ${x + 14} 26 ${x} ${56 + (i % 3) * 14}T${x + 4} ${84 + (i % 2) * 8}`,
        shine,
        i % 2 === 0 ? 3 : 6,
        opacity(i % 2 === 0 ? 0.8 : 0.45),
      ),
    );
    return [
      b.halo(0, -36, 96, b.main, 0.4),
      ...arms,
      path(
        "M-48 -20Q-50 -82 0 -84Q50 -82 48 -20Q36 -30 24 -20Q12 -30 0 -20Q-12 -30 -24 -20Q-36 -30 -48 -20Z",
        shine,
        opacity(0.9),
      ),
      path(
        "M-32 -38Q-30 -70 -4 -74",
        "none",
        `stroke="${b.ink(made.white)}" stroke-width="5" stroke-linecap="round" stroke-opacity="0.7"`,
      ),
      ...[-20, 0, 20].map((x) => ellipse(x, -42, 7, 10, b.ink(made.white), opacity(0.35))),
    ].join("");
  },
};

const turtle: Drawing = {
  habitat: "underwater",
  width: 160,
  height: 90,
  size: 0.26,
  reach: { right: 14, bottom: 14 },
  colors: [lch(0.55, 0.11, 150), lch(0.55, 0.09, 75)],
  draw: (b) =>
    [
      path("M30 10Q46 50 12 58Q6 34 12 14Z", b.own(0.16)),
      path("M-40 10Q-72 26 -80 44Q-52 42 -26 18Z", b.own(0.13)),
      path("M50 0Q60 -26 82 -22Q98 -14 92 0Q80 14 54 12Z", b.own(0.18)),
      path("M-62 12Q-50 -44 8 -46Q56 -42 62 12Q0 26 -62 12Z", b.own()),
      path("M-62 12Q0 26 62 12Q60 20 52 22Q0 32 -54 22Z", b.own(0.2)),
      path(
        "M-14 -40L14 -40L24 -14L0 4L-24 -14ZM24 -14L48 -24M0 4V20M-24 -14L-50 -18M24 -14L44 12M-24 -14L-38 12",
        "none",
        `stroke="${b.own(0.14)}" stroke-width="3.4" stroke-linejoin="round"`,
      ),
      circle(82, -10, 3, b.ink(made.black)) + circle(83, -11, 1, b.ink(made.white)),
    ].join(""),
};

const crab: Drawing = {
  habitat: "underwater",
  width: 140,
  height: 80,
  size: 0.2,
  reach: { top: 34 },
  colors: [lch(0.64, 0.2, 30)],
  draw: (b) =>
    [
      stroke(
        "M-36 -12L-58 -4L-62 10M-30 -4L-46 6L-48 16M36 -12L58 -4L62 10M30 -4L46 6L48 16",
        b.own(-0.06),
        5,
      ),
      stroke("M-36 -26L-54 -44M36 -26L54 -44", b.own(), 8),
      path(
        "M-54 -42Q-76 -44 -72 -70Q-62 -58 -58 -60Q-56 -72 -48 -74Q-38 -54 -54 -42ZM54 -42Q76 -44 72 -70Q62 -58 58 -60Q56 -72 48 -74Q38 -54 54 -42Z",
        b.own(),
      ),
      stroke("M-12 -34V-48M12 -34V-48", b.own(), 4),
      ellipse(0, -16, 42, 24, b.own()),
      path("M-40 -10Q0 6 40 -10Q34 8 0 8T-40 -10Z", b.own(-0.08)),
      circle(-12, -50, 6, b.ink(made.white)) +
        circle(12, -50, 6, b.ink(made.white)) +
        circle(-11, -50, 3, b.ink(made.black)) +
        circle(13, -50, 3, b.ink(made.black)),
      path("M-8 -12Q0 -6 8 -12", "none", `stroke="${b.own(-0.3)}" stroke-width="2.4" stroke-linecap="round"`),
    ].join(""),
};

const starfish: Drawing = {
  habitat: "underwater",
  width: 100,
  height: 100,
  size: 0.2,
  colors: [made.orange, lch(0.7, 0.17, 20)],
  draw: (b) => {
    const points = Array.from({ length: 10 }, (_, i) => {
      const [r, a] = [i % 2 === 0 ? 48 : 21, (i / 10) * Math.PI * 2 - Math.PI / 2];
      return `${(Math.cos(a) * r).toFixed(1)},${(Math.sin(a) * r).toFixed(1)}`;
    }).join(" ");
    const dots = Array.from({ length: 5 }, (_, i) => (i / 5) * Math.PI * 2 - Math.PI / 2).flatMap((a) =>
      [14, 26, 36].map((r) => circle(Math.cos(a) * r, Math.sin(a) * r, 2.6, b.own(0.12))),
    );
    return (
      polygon(points, b.own(), `stroke="${b.own()}" stroke-width="12" stroke-linejoin="round"`) +
      dots.join("")
    );
  },
};

/** Animals of the sea, by name. */
export const seaAnimals = { fish, whale, dolphin, shark, octopus, jellyfish, turtle, crab, starfish };
