import { lch } from "../color/color.ts";
import { circle, ellipse, group, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const skins = [lch(0.83, 0.06, 60), lch(0.68, 0.08, 55), lch(0.52, 0.07, 48), lch(0.77, 0.07, 62)];

const person: Drawing = {
  habitat: "land",
  width: 60,
  height: 140,
  size: 0.3,
  colors: [made.red, made.teal, made.yellow, lch(0.5, 0.12, 265)],
  draw: (b) => {
    const skin = b.ink(b.random.pick(skins));
    const hair = b.ink(b.random.pick([made.black, made.bark, lch(0.7, 0.1, 75)]));
    return [
      stroke("M-8 -56L-10 -6M8 -56L11 -6", b.second(lch(0.38, 0.05, 262)), 12),
      path("M-18 0Q-18 -9 -8 -8H-4V0ZM6 0V-8H10Q20 -8 20 0Z", b.ink(made.dark)),
      stroke("M-16 -96L-26 -66", b.own(-0.05), 9) + stroke("M16 -96L27 -68", b.own(-0.09), 9),
      circle(-27, -61, 5, skin) + circle(28, -63, 5, skin),
      path("M-20 -98Q-18 -106 0 -106Q18 -106 20 -98L17 -50H-17Z", b.own()),
      path("M6 -106Q18 -106 20 -98L17 -50H6Z", b.own(-0.06)),
      rect(-4.5, -112, 9, 9, skin),
      circle(0, -124, 14, skin),
      path("M-15 -121Q-17 -141 0 -141Q17 -141 15 -121Q10 -131 0 -131T-15 -121Z", hair),
      circle(-5, -122, 1.6, b.ink(made.black)) + circle(5, -122, 1.6, b.ink(made.black)),
      path(
        "M-4 -116Q0 -113 4 -116",
        "none",
        `stroke="${b.ink(made.bark)}" stroke-width="1.4" stroke-linecap="round"`,
      ),
    ].join("");
  },
};

const robot: Drawing = {
  habitat: "studio",
  width: 120,
  height: 160,
  size: 0.56,
  colors: [lch(0.74, 0.05, 225), made.metal, lch(0.76, 0.11, 190), made.yellow],
  draw: (b) => {
    const dark = b.own(-0.2);
    return [
      stroke("M0 -138V-154", dark, 4) + circle(0, -157, 6, b.glow(made.red)),
      stroke("M-42 -74Q-62 -64 -58 -40M42 -74Q62 -64 58 -40", dark, 10),
      path(
        "M-66 -38A9 9 0 1 1 -50 -38L-53 -34A5 5 0 1 0 -63 -34ZM66 -38A9 9 0 1 0 50 -38L53 -34A5 5 0 1 1 63 -34Z",
        b.own(-0.06),
      ),
      rect(-26, -30, 18, 24, dark, 3) + rect(8, -30, 18, 24, dark, 3),
      rect(-34, -9, 30, 10, b.own(-0.08), 5) + rect(4, -9, 30, 10, b.own(-0.08), 5),
      rect(-42, -88, 84, 62, b.own(), 12),
      rect(14, -88, 28, 62, b.own(-0.06), 12),
      rect(-24, -74, 48, 30, b.ink(made.dark), 6),
      circle(-12, -59, 6, b.glow(made.red)) +
        circle(4, -59, 4, b.glow(made.yellow)) +
        circle(15, -59, 4, b.glow(lch(0.8, 0.18, 145))),
      rect(-10, -96, 20, 10, dark),
      rect(-38, -140, 76, 46, b.own(0.03), 14),
      rect(-46, -126, 9, 20, dark, 3) + rect(37, -126, 9, 20, dark, 3),
      rect(-30, -132, 60, 28, b.ink(made.black), 10),
      circle(-14, -118, 8, b.glow(lch(0.87, 0.13, 200))) + circle(14, -118, 8, b.glow(lch(0.87, 0.13, 200))),
      circle(-12, -120, 2.6, b.ink(made.white)) + circle(16, -120, 2.6, b.ink(made.white)),
    ].join("");
  },
};

const astronaut: Drawing = {
  standing: true,
  habitat: "space",
  width: 110,
  height: 150,
  size: 0.44,
  colors: [made.white],
  draw: (b) =>
    [
      rect(-34, -104, 68, 62, b.own(-0.18), 12),
      stroke("M-14 -44L-20 -10M14 -44L22 -12", b.own(-0.03), 22),
      path("M-36 0Q-36 -14 -22 -14H-8V0ZM10 0V-14H24Q38 -14 38 0Z", b.own(-0.14)),
      stroke("M-26 -86L-46 -62", b.own(-0.04), 18) + stroke("M26 -86L48 -102", b.own(-0.07), 18),
      circle(-49, -58, 10, b.second(made.orange)) + circle(51, -105, 10, b.second(made.orange)),
      rect(-29, -100, 58, 62, b.own(), 16),
      rect(-15, -78, 30, 20, b.own(-0.14), 4) +
        circle(-7, -68, 3, b.glow(made.red)) +
        circle(3, -68, 3, b.glow(lch(0.8, 0.18, 145))),
      circle(0, -118, 32, b.own()),
      ellipse(3, -117, 24, 21, b.ink(lch(0.35, 0.09, 265))),
      path(
        "M-14 -126Q-8 -136 6 -136",
        "none",
        `stroke="${b.glow(lch(0.85, 0.1, 210))}" stroke-width="5" stroke-linecap="round"`,
      ),
      path("M4 -98Q22 -100 26 -114Q24 -98 4 -98Z", b.glow(made.lamp), opacity(0.7)),
    ].join(""),
};

const snowman: Drawing = {
  habitat: "snow",
  width: 100,
  height: 150,
  size: 0.44,
  reach: { left: 10, right: 13 },
  colors: [made.snow],
  draw: (b) =>
    [
      stroke("M-28 -72L-58 -94M-48 -87L-58 -80M28 -72L58 -96M48 -88L60 -86", b.ink(made.bark), 4),
      circle(0, -32, 36, b.own()) + path("M12 -66A36 36 0 0 1 12 2A50 50 0 0 0 12 -66Z", b.own(-0.08)),
      circle(0, -80, 27, b.own()) + path("M9 -105A27 27 0 0 1 9 -55A38 38 0 0 0 9 -105Z", b.own(-0.08)),
      circle(0, -116, 20, b.own()),
      path("M-22 -102Q0 -90 22 -102L22 -94Q0 -82 -22 -94Z", b.second(made.red)) +
        polygon("10,-94 18,-66 28,-70 20,-96", b.second(made.red, -0.07)),
      rect(-25, -134, 50, 5, b.ink(made.black), 2) +
        rect(-16, -158, 32, 26, b.ink(made.black), 2) +
        rect(-16, -140, 32, 6, b.second(made.red)),
      circle(-7, -120, 2.6, b.ink(made.black)) + circle(7, -120, 2.6, b.ink(made.black)),
      polygon("0,-117 26,-112 0,-110", b.ink(made.orange)),
      ...[-86, -74, -34, -22].map((y) => circle(0, y, 2.8, b.ink(made.black))),
    ].join(""),
};

const ghost: Drawing = {
  habitat: "land",
  width: 90,
  height: 120,
  size: 0.38,
  colors: [made.white],
  draw: (b) =>
    [
      b.halo(0, -60, 105, b.main, 0.4),
      path(
        "M-38 -6V-70Q-36 -116 0 -118Q36 -116 38 -70V-6Q28 -20 19 -6Q9 6 0 -8Q-9 6 -19 -6Q-28 -20 -38 -6Z",
        b.glow(b.main),
        opacity(0.94),
      ),
      path(
        "M14 -116Q36 -108 38 -70V-6Q32 -14 27 -14Q30 -80 14 -116Z",
        b.ink(lch(0.8, 0.04, 270)),
        opacity(0.7),
      ),
      ellipse(-12, -78, 6, 9, b.ink(made.black)) + ellipse(12, -78, 6, 9, b.ink(made.black)),
      ellipse(0, -56, 7, 9, b.ink(made.black)),
      ellipse(-24, -62, 6, 4, b.ink(made.pink), opacity(0.7)) +
        ellipse(24, -62, 6, 4, b.ink(made.pink), opacity(0.7)),
    ].join(""),
};

const wizard: Drawing = {
  habitat: "land",
  width: 90,
  height: 170,
  size: 0.46,
  colors: [lch(0.42, 0.15, 290), lch(0.42, 0.12, 262)],
  draw: (b) =>
    [
      stroke("M40 0V-118", b.ink(made.bark), 5) +
        circle(40, -124, 9, b.glow(lch(0.85, 0.13, 195))) +
        b.halo(40, -124, 44, lch(0.85, 0.13, 195)),
      path("M-36 0Q-26 -60 -18 -96H18Q26 -60 36 0Q0 6 -36 0Z", b.own()),
      path("M8 -96H18Q26 -60 36 0Q24 3 14 3Z", b.own(-0.06)),
      stroke("M14 -86Q30 -76 40 -66", b.own(-0.03), 12),
      circle(0, -106, 15, b.ink(skins[0] ?? made.cream)),
      path("M-14 -104Q-16 -54 0 -46Q16 -54 14 -104Q0 -92 -14 -104Z", b.ink(made.white)),
      circle(-5, -110, 1.7, b.ink(made.black)) + circle(5, -110, 1.7, b.ink(made.black)),
      path(
        "M-30 -114Q0 -104 30 -114Q14 -120 10 -134Q4 -154 14 -170Q-8 -162 -12 -134Q-16 -120 -30 -114Z",
        b.own(),
      ),
      ...[
        [-4, -130],
        [-16, -30],
        [6, -16],
        [-4, -64],
        [18, -44],
      ].map(([x = 0, y = 0]) =>
        polygon(
          `${x},${y - 4} ${x + 1.2},${y - 1.2} ${x + 4},${y} ${x + 1.2},${y + 1.2} ${x},${y + 4} ${x - 1.2},${y + 1.2} ${x - 4},${y} ${x - 1.2},${y - 1.2}`,
          b.ink(made.gold),
        ),
      ),
    ].join(""),
};

const dragon: Drawing = {
  habitat: "air",
  width: 286,
  height: 170,
  size: 0.44,
  colors: [lch(0.58, 0.15, 150), made.red, made.purple],
  draw: (b) =>
    group(
      'transform="translate(-36 12)"',
      path("M0 -10Q-6 -78 -70 -84Q-54 -68 -58 -58Q-42 -62 -40 -46Q-26 -46 -22 -28Z", b.second(b.main, -0.14)),
      path("M-40 8Q-80 4 -96 34Q-104 56 -84 58Q-90 42 -70 30Q-50 22 -30 30Z", b.own()),
      polygon("-86,56 -104,72 -76,66", b.own(-0.1)),
      stroke("M-26 28L-34 50L-22 52M14 30L12 52L24 52", b.own(-0.06), 10),
      path(
        "M-52 12Q-20 -22 24 -12Q44 -14 52 -34Q54 -52 68 -54Q72 -66 92 -58L112 -48Q116 -38 106 -36Q88 -34 82 -28Q76 0 50 26Q10 46 -30 36Q-50 30 -52 12Z",
        b.own(),
      ),
      path("M80 -24Q72 0 48 22Q20 40 -22 34Q20 26 40 8Q58 -6 64 -30Z", b.ink(made.sand)),
      path(
        "M2 -8Q22 -84 92 -96Q78 -76 84 -66Q62 -68 58 -50Q44 -52 34 -20Z",
        b.second(b.main, -0.08),
        'transform="translate(-10 0)"',
      ),
      polygon("66,-54 58,-72 76,-60", b.ink(made.sand)) + polygon("76,-58 72,-76 86,-60", b.ink(made.sand)),
      ...[
        [-44, 2],
        [-28, -10],
        [-10, -15],
        [44, -24],
      ].map(([x = 0, y = 0]) =>
        polygon(`${x - 6},${y + 3} ${x - 2},${y - 10} ${x + 6},${y + 1}`, b.own(-0.14)),
      ),
      circle(82, -49, 3.4, b.ink(made.yellow)) + circle(83, -49, 1.7, b.ink(made.black)),
      circle(107, -44, 1.4, b.ink(made.black)),
      path("M110 -43Q126 -57 152 -55Q145 -50 178 -38Q148 -38 156 -26Q130 -25 110 -39Z", b.glow(made.fire)),
      path("M113 -42Q128 -49 146 -46Q140 -42 158 -37Q138 -37 140 -32Q126 -33 113 -40Z", b.glow(made.lamp)),
    ),
};

const frog: Drawing = {
  habitat: "land",
  width: 110,
  height: 80,
  size: 0.22,
  colors: [lch(0.7, 0.18, 138)],
  draw: (b) =>
    [
      path("M-34 -4Q-62 -4 -54 -30Q-44 -44 -26 -30ZM34 -4Q62 -4 54 -30Q44 -44 26 -30Z", b.own(-0.06)),
      ellipse(0, -26, 40, 26, b.own()),
      ellipse(0, -17, 26, 17, b.ink(made.cream)),
      ellipse(-36, -3, 16, 5, b.own(-0.08)) +
        ellipse(36, -3, 16, 5, b.own(-0.08)) +
        ellipse(-12, -3, 11, 4.5, b.own(-0.03)) +
        ellipse(12, -3, 11, 4.5, b.own(-0.03)),
      path("M-38 -44Q-36 -62 0 -62Q36 -62 38 -44Q30 -26 0 -26T-38 -44Z", b.own(0.02)),
      circle(-20, -62, 12, b.own(0.02)) + circle(20, -62, 12, b.own(0.02)),
      ...[-20, 20].map(
        (x) =>
          circle(x, -63, 8, b.ink(made.white)) +
          circle(x, -63, 4.6, b.ink(made.black)) +
          circle(x + 1.5, -65, 1.5, b.ink(made.white)),
      ),
      path(
        "M-28 -42Q0 -28 28 -42",
        "none",
        `stroke="${b.own(-0.25)}" stroke-width="2.6" stroke-linecap="round"`,
      ),
      ellipse(-26, -40, 5, 3, b.ink(made.pink), opacity(0.7)) +
        ellipse(26, -40, 5, 3, b.ink(made.pink), opacity(0.7)),
    ].join(""),
};

const snail: Drawing = {
  habitat: "land",
  width: 120,
  height: 76,
  size: 0.18,
  colors: [lch(0.7, 0.14, 45), lch(0.68, 0.13, 350)],
  draw: (b) =>
    [
      stroke("M50 -30L56 -56M42 -30L40 -56", b.ink(made.sand, -0.04), 4) +
        circle(56, -58, 5, b.ink(made.black)) +
        circle(40, -58, 5, b.ink(made.black)),
      path("M-62 0Q-40 -16 0 -14Q30 -14 32 -34Q46 -46 58 -32Q62 -4 36 0Z", b.ink(made.sand, -0.04)),
      circle(-8, -40, 34, b.own()),
      path(
        "M-8 -40m0 -24a24 24 0 1 0 24 24a17 17 0 1 0 -17 17a10 10 0 1 0 10 -10",
        "none",
        `stroke="${b.own(-0.14)}" stroke-width="6" stroke-linecap="round"`,
      ),
      path(
        "M44 -16Q50 -12 55 -16",
        "none",
        `stroke="${b.ink(made.bark)}" stroke-width="2" stroke-linecap="round"`,
      ),
    ].join(""),
};

/** People and creatures of tales, and two small animals, by name. */
export const figures = { person, robot, astronaut, snowman, ghost, wizard, dragon, frog, snail };
