import { lch } from "../color/color.ts";
import { circle, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Brush, type Drawing, made } from "./drawing.ts";

function wheel(b: Brush, x: number, radius: number): string {
  return (
    circle(x, -radius, radius, b.ink(made.black)) +
    circle(x, -radius, radius * 0.55, b.ink(made.metal)) +
    circle(x, -radius, radius * 0.2, b.ink(made.steel))
  );
}

/** Glass that shows the sky by day and a lamp by night. */
function glass(b: Brush): string {
  return b.lit ? b.glow(lch(0.9, 0.1, 88)) : b.ink(made.glass, 0.04);
}

const paints = [made.red, lch(0.68, 0.13, 200), made.yellow, lch(0.62, 0.16, 250), lch(0.72, 0.15, 40)];

const car: Drawing = {
  habitat: "land",
  width: 170,
  height: 70,
  size: 0.2,
  colors: paints,
  draw: (b) =>
    [
      path("M-46 -38Q-34 -66 -10 -67H18Q38 -66 56 -38Z", b.own(0.02)),
      path("M-37 -38Q-28 -60 -10 -60H0V-38Z", glass(b)),
      path("M6 -60H17Q33 -59 45 -38H6Z", glass(b)),
      path("M-82 -14Q-84 -34 -60 -38H58Q80 -36 84 -20V-12Q84 -8 78 -8H-78Q-82 -8 -82 -14Z", b.own()),
      path("M-82 -20H84V-12Q84 -8 78 -8H-78Q-82 -8 -82 -14Z", b.own(-0.1)),
      rect(72, -30, 11, 9, b.lit ? b.glow(made.lamp) : b.ink(made.cream), 3),
      rect(-83, -30, 7, 10, b.ink(made.red, -0.05), 2),
      stroke("M3 -36V-14M-14 -30H-6M14 -30H22", b.own(-0.16), 2),
      wheel(b, -46, 16),
      wheel(b, 48, 16),
    ].join(""),
};

const van: Drawing = {
  habitat: "land",
  width: 170,
  height: 92,
  size: 0.26,
  colors: [lch(0.76, 0.11, 195), made.orange, lch(0.8, 0.12, 20)],
  draw: (b) =>
    [
      path("M-80 -12V-60Q-80 -88 -56 -88H40Q60 -88 70 -62L80 -46V-12Z", b.second(made.cream)),
      path("M-80 -48H79L80 -46V-16Q80 -8 72 -8H-72Q-80 -8 -80 -16Z", b.own()),
      ...[-66, -30, 6].map((x) => rect(x, -78, 29, 24, glass(b), 4)),
      path("M42 -78Q54 -78 62 -54H42Z", glass(b)),
      circle(70, -32, 7, b.lit ? b.glow(made.lamp) : b.ink(made.cream)),
      rect(-80, -18, 160, 6, b.ink(made.metal), 2),
      wheel(b, -46, 16),
      wheel(b, 46, 16),
    ].join(""),
};

const bus: Drawing = {
  habitat: "land",
  width: 210,
  height: 112,
  size: 0.28,
  colors: [made.red, made.yellow, made.teal],
  draw: (b) =>
    [
      rect(-100, -106, 200, 96, b.own(), 14),
      rect(-100, -34, 200, 24, b.own(-0.08), 8),
      ...[-90, -55, -20, 15].map((x) => rect(x, -94, 30, 24, glass(b), 4)),
      rect(50, -94, 44, 30, glass(b), 5),
      ...[-90, -55, -20, 15].map((x) => rect(x, -64, 30, 20, glass(b), 4)),
      rect(54, -58, 26, 48, b.own(-0.16), 3),
      rect(-100, -42, 200, 4, b.ink(made.cream)),
      rect(90, -30, 9, 9, b.lit ? b.glow(made.lamp) : b.ink(made.cream), 3),
      wheel(b, -58, 18),
      wheel(b, 40, 18),
    ].join(""),
};

const truck: Drawing = {
  habitat: "land",
  width: 210,
  height: 100,
  size: 0.26,
  colors: paints,
  draw: (b) =>
    [
      rect(-104, -98, 136, 84, b.second(made.cream), 4),
      rect(-104, -30, 136, 16, b.second(made.cream, -0.1)),
      path("M36 -14V-76H68Q78 -76 84 -62L92 -44Q102 -42 102 -34V-14Z", b.own()),
      path("M46 -68H66Q73 -68 77 -58L82 -46H46Z", glass(b)),
      rect(-104, -18, 206, 8, b.ink(made.dark)),
      circle(98, -26, 5, b.lit ? b.glow(made.lamp) : b.ink(made.cream)),
      wheel(b, -72, 17),
      wheel(b, -32, 17),
      wheel(b, 70, 17),
    ].join(""),
};

const tractor: Drawing = {
  habitat: "land",
  width: 150,
  height: 110,
  size: 0.26,
  colors: [lch(0.6, 0.16, 145), made.red, made.blue],
  draw: (b) =>
    [
      path("M-44 -40V-104H14L22 -58H70Q76 -58 76 -50V-24H-44Z", b.own()),
      path("M-34 -62V-94H6L12 -62Z", glass(b)),
      rect(-52, -110, 76, 8, b.own(-0.1), 3),
      stroke("M50 -58V-92", b.ink(made.dark), 6),
      rect(36, -48, 34, 4, b.own(-0.14)) + rect(36, -40, 34, 4, b.own(-0.14)),
      wheel(b, -34, 34),
      wheel(b, 54, 21),
    ].join(""),
};

const train: Drawing = {
  habitat: "land",
  width: 330,
  height: 110,
  size: 0.24,
  reach: { top: 82 },
  colors: [lch(0.5, 0.15, 28), lch(0.45, 0.09, 255), lch(0.48, 0.1, 155)],
  draw: (b) => {
    const carriage = (x: number) =>
      rect(x, -72, 100, 56, b.own(), 5) +
      rect(x, -30, 100, 14, b.own(-0.1), 4) +
      rect(x - 2, -78, 104, 9, b.ink(made.dark), 4) +
      [10, 38, 66].map((at) => rect(x + at, -62, 22, 22, glass(b), 3)).join("") +
      [22, 78].map((at) => wheel(b, x + at, 10)).join("");
    return [
      rect(-170, -6, 340, 3, b.ink(made.steel)),
      ...[0, 1, 2, 3].map((i) =>
        circle(126 - i * 22, -122 - i * 13, 13 + i * 6, b.ink(made.white, -0.04), opacity(0.6 - i * 0.11)),
      ),
      carriage(-164),
      carriage(-56),
      stroke("M-66 -22H60", b.ink(made.dark), 4),
      rect(54, -88, 42, 72, b.own()),
      rect(48, -96, 54, 10, b.ink(made.dark), 3),
      rect(62, -78, 24, 24, glass(b), 3),
      rect(92, -62, 58, 44, b.own(-0.05), 10),
      rect(150, -58, 8, 36, b.ink(made.gold), 3),
      path("M116 -62L112 -98H136L132 -62Z", b.ink(made.dark)),
      rect(100, -72, 10, 12, b.ink(made.gold), 4),
      polygon("150,-18 176,-4 150,-4", b.ink(made.dark)),
      circle(158, -66, 6, b.lit ? b.glow(made.lamp) : b.ink(made.cream)),
      wheel(b, 68, 14),
      wheel(b, 100, 14),
      wheel(b, 132, 14),
      stroke("M68 -14H132", b.ink(made.metal), 3.4),
    ].join("");
  },
};

const bicycle: Drawing = {
  habitat: "land",
  width: 150,
  height: 96,
  size: 0.25,
  colors: [made.red, made.teal, made.orange],
  draw: (b) => {
    const rim = (x: number) =>
      `<circle cx="${x}" cy="-30" r="29" fill="none" stroke="${b.ink(made.black)}" stroke-width="4.5"/>` +
      stroke(
        `M${x - 27} -30H${x + 27}M${x} -57V-3M${x - 19} -49L${x + 19} -11M${x + 19} -49L${x - 19} -11`,
        b.ink(made.metal),
        0.9,
      );
    return [
      rim(-44),
      rim(46),
      stroke("M-44 -30L-20 -70H32L0 -28H-44M0 -28L-24 -80M46 -30L30 -84", b.own(), 5),
      stroke("M-34 -82H-14", b.ink(made.bark), 6),
      stroke("M30 -84L22 -90M30 -84H44Q48 -84 46 -76", b.ink(made.dark), 4),
      circle(0, -28, 7, b.ink(made.steel)),
      stroke("M0 -28L8 -14M4 -13H13", b.ink(made.dark), 3),
    ].join("");
  },
};

/** What drives, by name. */
export const vehicles = { car, van, bus, truck, tractor, train, bicycle };
