import { type Lch, lch } from "../../color/color.ts";
import { circle, ellipse, opacity, path, polygon, stroke } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";

function eye(b: Brush, x: number, y: number, size: number): string {
  return (
    circle(x, y, size, b.ink(made.white)) +
    circle(x + size * 0.1, y, size * 0.62, b.ink(made.black)) +
    circle(x + size * 0.35, y - size * 0.3, size * 0.2, b.ink(made.white))
  );
}

const bird: Drawing = {
  habitat: "air",
  width: 130,
  height: 60,
  size: 0.09,
  colors: [made.dark, made.white],
  draw: (b) =>
    path(
      "M-62 -18Q-34 -40 -8 -4Q0 -8 8 -4Q34 -40 62 -18Q36 -20 14 8Q6 20 0 22Q-6 20 -14 8Q-36 -20 -62 -18Z",
      b.own(),
    ) + path("M0 -7Q8 -6 12 0L22 3L12 6Q6 16 0 22Z", b.own(-0.04)),
};

/** A bird on the stump of a tree. */
function perched(b: Brush, ...bird: readonly string[]): string {
  const stump = [
    path("M-40 0Q-30 -10 -30 -34H30Q30 -10 42 0Q0 6 -40 0Z", b.ink(made.bark)),
    path("M8 -34H30Q30 -10 42 0Q28 3 16 3Q14 -14 8 -34Z", b.ink(made.bark, -0.06)),
    ellipse(0, -34, 30, 7, b.ink(made.wood, 0.1)) + ellipse(2, -34, 16, 3.5, b.ink(made.wood)),
  ];
  return `${stump.join("")}<g transform="translate(0 -35)">${bird.join("")}</g>`;
}

const owl: Drawing = {
  habitat: "forest",
  width: 90,
  height: 150,
  size: 0.38,
  colors: [lch(0.52, 0.07, 52), lch(0.66, 0.05, 65), lch(0.5, 0.04, 270)],
  draw: (b) => {
    const scallops = [-44, -32, -20].flatMap((y, row) =>
      [-14, 0, 14].map((x) =>
        path(
          `M${x - 6 + (row % 2) * 4} ${y}q6 9 12 0`,
          "none",
          `stroke="${b.own(-0.06)}" stroke-width="2.4" stroke-linecap="round"`,
        ),
      ),
    );
    return perched(
      b,
      path("M-38 -86Q-46 -30 -24 -6Q0 6 24 -6Q46 -30 38 -86Q30 -104 0 -104Q-30 -104 -38 -86Z", b.own()),
      polygon("-38,-82 -40,-118 -14,-100", b.own()) + polygon("38,-82 40,-118 14,-100", b.own(-0.04)),
      path("M-38 -70Q-52 -30 -26 -8Q-22 -40 -38 -70ZM38 -70Q52 -30 26 -8Q22 -40 38 -70Z", b.own(-0.09)),
      ellipse(0, -32, 23, 30, b.own(0.18)),
      ...scallops,
      circle(-17, -78, 18, b.own(0.2)) + circle(17, -78, 18, b.own(0.2)),
      ...[-17, 17].map(
        (x) =>
          circle(x, -78, 11.5, b.glow(lch(0.87, 0.16, 88))) +
          circle(x, -78, 6.5, b.ink(made.black)) +
          circle(x + 2, -81, 2.2, b.ink(made.white)),
      ),
      polygon("-5,-70 5,-70 0,-58", b.ink(made.orange)),
      stroke("M-14 0v-5M-9 0v-6M9 0v-6M14 0v-5", b.ink(made.orange), 3),
    );
  },
};

const parrot: Drawing = {
  habitat: "forest",
  width: 120,
  height: 140,
  size: 0.34,
  colors: [made.red, lch(0.6, 0.15, 250), lch(0.7, 0.17, 145), lch(0.68, 0.18, 40)],
  draw: (b) =>
    perched(
      b,
      path("M-10 -20L-62 36L-46 42L8 -6Z", b.second(made.blue)),
      path("M-26 -20Q-34 -86 10 -96Q44 -92 40 -58Q36 -8 -2 0Q-22 0 -26 -20Z", b.own()),
      path("M-24 -38Q-8 -66 20 -56Q22 -14 -34 16Q-30 -10 -24 -38Z", b.second(made.blue)),
      path("M-14 -36Q2 -52 14 -46Q14 -22 -20 2Q-18 -16 -14 -36Z", b.second(made.yellow, -0.04)),
      path("M34 -84Q58 -80 52 -58Q44 -66 36 -66Z", b.ink(made.orange)),
      circle(24, -78, 10, b.ink(made.white)),
      circle(26, -78, 4.4, b.ink(made.black)) + circle(27.5, -79.5, 1.4, b.ink(made.white)),
      stroke("M-4 0v6M6 -2v7", b.ink(made.orange), 3.4),
    ),
};

function floatingBody(b: Brush, color: Lch): string {
  return (
    path("M-58 -36Q-40 -22 -14 -32Q20 -40 44 -26Q56 -2 24 8H-24Q-50 4 -58 -36Z", b.ink(color)) +
    path("M-44 -18Q-14 -34 22 -20Q16 2 -16 0Q-36 -2 -44 -18Z", b.ink(color, -0.07)) +
    path("M-36 4Q0 12 36 4Q24 10 0 10T-36 4Z", b.ink(made.white), opacity(0.5))
  );
}

const duck: Drawing = {
  habitat: "water",
  width: 120,
  height: 76,
  size: 0.18,
  reach: { right: 15, bottom: 10 },
  colors: [made.yellow, lch(0.6, 0.06, 60)],
  draw: (b) =>
    floatingBody(b, b.main) +
    circle(38, -46, 19, b.second(b.main)) +
    path("M52 -50Q72 -48 74 -40Q62 -36 52 -40Z", b.ink(made.orange)) +
    eye(b, 43, -50, 3.6),
};

const swan: Drawing = {
  habitat: "water",
  width: 140,
  height: 110,
  size: 0.26,
  colors: [made.white, made.white, made.black],
  draw: (b) =>
    [
      path(
        "M34 -18C56 -30 18 -70 34 -92C44 -106 60 -98 60 -84",
        "none",
        `stroke="${b.own()}" stroke-width="13" stroke-linecap="round"`,
      ),
      path("M56 -90L78 -76L58 -76Z", b.ink(made.orange)),
      polygon("54,-92 62,-84 56,-78", b.ink(made.black)),
      circle(54, -90, 2.2, b.ink(made.black)),
      path("M-66 -40Q-44 -20 -20 -40Q10 -56 40 -30Q54 -4 24 8H-26Q-54 2 -66 -40Z", b.own()),
      path("M-70 -52Q-46 -62 -8 -50Q22 -40 20 -18Q-2 2 -32 -8Q-58 -20 -70 -52Z", b.own(-0.05)),
      path(
        "M-56 -44Q-26 -44 0 -28M-46 -32Q-22 -32 -4 -18",
        "none",
        `stroke="${b.own(-0.13)}" stroke-width="2.4" stroke-linecap="round"`,
      ),
    ].join(""),
};

const flamingo: Drawing = {
  habitat: "water",
  width: 100,
  height: 160,
  size: 0.42,
  colors: [lch(0.77, 0.14, 8)],
  draw: (b) =>
    [
      stroke("M-4 -66V0M6 -66L18 -40L8 -22", b.own(-0.06), 3.4),
      stroke("M26 -84C50 -96 4 -126 24 -146C36 -154 44 -144 42 -136", b.own(), 9),
      path("M38 -144Q54 -138 50 -118Q42 -120 38 -130Z", b.own(0.1)) +
        path("M50 -128Q54 -122 50 -116L46 -122Z", b.ink(made.black)),
      path("M-42 -92Q-20 -110 14 -104Q42 -96 32 -76Q10 -56 -16 -64Q-36 -72 -42 -92Z", b.own()),
      path("M-46 -90Q-16 -104 8 -90Q4 -70 -20 -70Q-38 -76 -46 -90Z", b.own(-0.08)),
      circle(36, -142, 2, b.ink(made.black)),
    ].join(""),
};

const chicken: Drawing = {
  habitat: "land",
  width: 110,
  height: 104,
  size: 0.26,
  colors: [made.white, lch(0.6, 0.13, 45)],
  draw: (b) =>
    [
      stroke("M-8 -22V-4M10 -22V-4M-8 -3l9 2M10 -3l9 2", b.ink(made.orange), 3.4),
      path("M-34 -50Q-70 -92 -56 -44Z", b.own(-0.12)) + path("M-30 -52Q-52 -104 -40 -46Z", b.own(-0.05)),
      path("M-48 -50Q-40 -14 0 -16Q40 -18 38 -60Q40 -92 26 -94Q10 -94 6 -70Q-20 -50 -48 -50Z", b.own()),
      path("M-30 -46Q-8 -56 12 -44Q8 -24 -12 -24Q-26 -28 -30 -46Z", b.own(-0.1)),
      path("M12 -92Q10 -106 19 -100Q24 -112 29 -100Q38 -104 34 -90Z", b.ink(made.red)),
      polygon("36,-84 52,-78 37,-74", b.ink(made.orange)),
      path("M34 -74Q42 -66 36 -60Q30 -64 34 -74Z", b.ink(made.red)),
      eye(b, 27, -82, 3.6),
    ].join(""),
};

const penguin: Drawing = {
  habitat: "snow",
  width: 80,
  height: 120,
  size: 0.38,
  colors: [lch(0.3, 0.03, 268)],
  draw: (b) =>
    [
      ellipse(-15, -3, 14, 6, b.ink(made.orange)) + ellipse(15, -3, 14, 6, b.ink(made.orange)),
      path("M-30 -70Q-52 -44 -44 -22Q-36 -30 -28 -44ZM30 -70Q52 -44 44 -22Q36 -30 28 -44Z", b.own(-0.04)),
      path("M0 -120Q34 -118 34 -60Q38 -4 0 -2Q-38 -4 -34 -60Q-34 -118 0 -120Z", b.own()),
      path("M0 -84Q24 -96 26 -54Q28 -8 0 -7Q-28 -8 -26 -54Q-24 -96 0 -84Z", b.ink(made.white)),
      path(
        "M0 -84Q-4 -108 -18 -102Q-28 -90 -18 -78Q-8 -72 0 -78Q8 -72 18 -78Q28 -90 18 -102Q4 -108 0 -84Z",
        b.ink(made.white),
      ),
      circle(-11, -91, 4, b.ink(made.black)) + circle(11, -91, 4, b.ink(made.black)),
      circle(-10, -92.5, 1.2, b.ink(made.white)) + circle(12, -92.5, 1.2, b.ink(made.white)),
      polygon("-7,-84 7,-84 0,-74", b.ink(made.orange)),
      path("M-24 -68Q0 -56 24 -68L25 -60Q0 -48 -25 -60Z", b.second(made.red)) +
        path("M12 -60L18 -36L26 -38L24 -62Z", b.second(made.red, -0.06)),
    ].join(""),
};

const butterfly: Drawing = {
  habitat: "air",
  width: 120,
  height: 90,
  size: 0.2,
  reach: { top: 9 },
  colors: [lch(0.72, 0.17, 50), lch(0.66, 0.14, 250), lch(0.7, 0.15, 320)],
  draw: (b) => {
    const wing = (s: number) =>
      path(
        `M0 -4C${s * 16} -52 ${s * 60} -52 ${s * 58} -22C${s * 56} 2 ${s * 24} 6 0 2Z`,
        b.own(s > 0 ? -0.05 : 0),
        `stroke="${b.ink(made.black)}" stroke-width="3"`,
      ) +
      path(
        `M0 2C${s * 26} 4 ${s * 46} 14 ${s * 40} 32C${s * 32} 46 ${s * 10} 34 0 8Z`,
        b.second(b.main, s > 0 ? -0.12 : -0.07),
        `stroke="${b.ink(made.black)}" stroke-width="3"`,
      ) +
      circle(s * 44, -26, 5, b.ink(made.white)) +
      circle(s * 30, -32, 3.4, b.ink(made.white)) +
      circle(s * 30, 26, 4, b.ink(made.white)) +
      path(
        `M${s * 6} -6Q${s * 22} -22 ${s * 34} -18Q${s * 24} -4 ${s * 6} -2Z`,
        b.ink(made.yellow),
        opacity(0.8),
      );
    return `<g transform="rotate(14)">${wing(-1)}${wing(1)}${ellipse(0, 2, 4, 22, b.ink(made.black))}${stroke("M-1 -18Q-8 -32 -14 -36M1 -18Q8 -32 14 -36", b.ink(made.black), 2)}</g>`;
  },
};

const bee: Drawing = {
  habitat: "air",
  width: 100,
  height: 70,
  size: 0.15,
  reach: { top: 14 },
  colors: [made.yellow],
  draw: (b) =>
    [
      ellipse(-8, -26, 14, 24, b.ink(made.white), `${opacity(0.75)} transform="rotate(-24 -8 -26)"`) +
        ellipse(14, -26, 13, 22, b.ink(made.white), `${opacity(0.6)} transform="rotate(20 14 -26)"`),
      ellipse(0, 4, 38, 25, b.own()),
      path("M-12 -20Q-20 4 -12 28H0Q-8 4 0 -21ZM12 -19Q4 4 12 27H22Q16 4 22 -15Z", b.ink(made.black)),
      polygon("-36,0 -50,5 -36,9", b.ink(made.black)),
      eye(b, 29, -1, 5),
      stroke("M30 -16Q34 -28 42 -28M24 -19Q26 -32 32 -34", b.ink(made.black), 2.4),
    ].join(""),
};

const ladybug: Drawing = {
  habitat: "land",
  width: 90,
  height: 60,
  size: 0.16,
  reach: { right: 9 },
  colors: [made.red],
  draw: (b) =>
    [
      stroke("M-24 -6L-32 0M-4 -6L-6 0M18 -6L24 0", b.ink(made.black), 4),
      circle(36, -22, 14, b.ink(made.black)) + circle(42, -26, 3.4, b.ink(made.white)),
      stroke("M40 -34Q44 -44 52 -44", b.ink(made.black), 2.4),
      path("M-42 -6Q-42 -54 0 -55Q38 -54 38 -6Z", b.own()),
      path("M-2 -55Q-6 -30 -4 -6", "none", `stroke="${b.ink(made.black)}" stroke-width="2.4"`),
      ...[
        [-24, -22, 6],
        [-16, -40, 5],
        [14, -40, 6],
        [20, -18, 6],
      ].map(([x = 0, y = 0, r = 0]) => circle(x, y, r, b.ink(made.black))),
    ].join(""),
};

/** Birds and insects, by name. */
export const birds = { bird, owl, parrot, duck, swan, flamingo, chicken, penguin, butterfly, bee, ladybug };
