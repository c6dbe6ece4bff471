import { lch } from "../color/color.ts";
import { circle, ellipse, opacity, path, polygon, rect, stroke } from "../shapes.ts";
import { type Drawing, made } from "./drawing.ts";

const lamp: Drawing = {
  habitat: "table",
  width: 110,
  height: 160,
  size: 0.52,
  colors: [lch(0.86, 0.1, 82), lch(0.72, 0.13, 30), made.teal],
  draw: (b) =>
    [
      b.halo(0, -104, 130, made.lamp),
      ellipse(0, -4, 30, 7, b.ink(made.bark)),
      rect(-3.5, -84, 7, 80, b.second(made.gold)),
      circle(0, -42, 9, b.second(made.gold, -0.06)),
      polygon("-52,-82 -28,-156 28,-156 52,-82", b.glow(b.main)),
      polygon("14,-82 8,-156 28,-156 52,-82", b.own(-0.06), opacity(0.6)),
      ellipse(0, -82, 52, 7, b.glow(made.lamp)),
      stroke("M32 -80V-60", b.ink(made.gold), 1.6) + circle(32, -58, 3.4, b.ink(made.gold)),
    ].join(""),
};

const lantern: Drawing = {
  habitat: "air",
  width: 90,
  height: 130,
  size: 0.3,
  reach: { bottom: 25 },
  colors: [lch(0.66, 0.2, 32), lch(0.8, 0.16, 65)],
  draw: (b) =>
    [
      b.halo(0, 0, 110, b.main),
      stroke("M0 -72V-50M0 46V66M-5 66V82M0 66V88M5 66V82", b.ink(made.gold), 2.4),
      ellipse(0, 0, 46, 44, b.glow(b.main)),
      ellipse(0, 0, 27, 44, b.glow(made.lamp), opacity(0.45)),
      ellipse(0, 0, 10, 44, b.glow(made.lamp), opacity(0.5)),
      rect(-20, -52, 40, 10, b.ink(made.gold), 3) + rect(-20, 42, 40, 10, b.ink(made.gold), 3),
    ].join(""),
};

const candle: Drawing = {
  habitat: "table",
  width: 70,
  height: 130,
  size: 0.4,
  colors: [made.cream, made.red],
  draw: (b) =>
    [
      b.halo(0, -112, 90, made.lamp, 0.7),
      path("M-34 -4Q0 -12 34 -4Q30 4 0 4T-34 -4Z", b.second(made.gold)),
      rect(-16, -88, 32, 84, b.own(), 4) + rect(4, -88, 12, 84, b.own(-0.07), 4),
      path("M-16 -84Q-16 -62 -11 -62Q-7 -62 -7 -76H4Q4 -66 8 -66Q12 -66 12 -84Z", b.own(0.04)),
      stroke("M0 -88V-96", b.ink(made.dark), 2.4),
      path("M0 -94Q-15 -106 0 -134Q15 -106 0 -94Z", b.glow(made.fire)) +
        path("M0 -96Q-7 -104 0 -120Q7 -104 0 -96Z", b.glow(made.lamp)),
    ].join(""),
};

const book: Drawing = {
  habitat: "table",
  width: 150,
  height: 66,
  size: 0.24,
  colors: [made.red, made.teal, lch(0.45, 0.12, 265)],
  draw: (b) => {
    const volume = (y: number, x: number, width: number, color: string, shade: string) =>
      rect(x, y - 20, width, 20, color, 3) +
      rect(x + 8, y - 16, width - 6, 12, b.ink(made.cream)) +
      rect(x, y - 20, 14, 20, shade, 3) +
      stroke(
        `M${x + 12} ${y - 12}H${x + width}M${x + 12} ${y - 8}H${x + width}`,
        b.ink(made.cream, -0.12),
        0.8,
      );
    return (
      volume(0, -66, 132, b.own(), b.own(-0.08)) +
      volume(-20, -56, 120, b.second(made.gold), b.second(made.gold, -0.08)) +
      volume(-40, -62, 112, b.ink(lch(0.5, 0.08, 225)), b.ink(lch(0.42, 0.08, 225))) +
      rect(30, -43, 7, 26, b.ink(made.red))
    );
  },
};

const clock: Drawing = {
  habitat: "table",
  width: 110,
  height: 130,
  size: 0.42,
  colors: [made.red, made.teal, made.gold],
  draw: (b) => {
    const ticks = Array.from({ length: 12 }, (_, i) => {
      const a = (i / 12) * Math.PI * 2;
      return circle(Math.sin(a) * 34, -56 - Math.cos(a) * 34, i % 3 === 0 ? 3 : 1.6, b.ink(made.dark));
    });
    return [
      stroke("M-28 -14L-38 0M28 -14L38 0", b.ink(made.dark), 7),
      circle(-30, -104, 17, b.own(-0.05)) + circle(30, -104, 17, b.own(-0.09)),
      stroke("M0 -108V-120M-12 -121H12", b.ink(made.dark), 5),
      circle(0, -56, 50, b.own()) + circle(0, -56, 41, b.ink(made.cream)),
      ...ticks,
      stroke("M0 -56L-12 -78M0 -56L20 -68", b.ink(made.dark), 4.4) + circle(0, -56, 4, b.ink(made.red)),
    ].join("");
  },
};

const chair: Drawing = {
  habitat: "table",
  width: 120,
  height: 120,
  size: 0.46,
  colors: [made.teal, lch(0.66, 0.14, 35), made.yellow],
  draw: (b) =>
    [
      stroke("M-38 -20L-44 0M38 -20L44 0", b.ink(made.bark), 6),
      path("M-42 -50Q-46 -118 0 -118Q46 -118 42 -50Z", b.own()),
      path("M10 -117Q46 -112 42 -50H20Z", b.own(-0.05)),
      rect(-60, -66, 24, 50, b.own(-0.06), 12) + rect(36, -66, 24, 50, b.own(-0.1), 12),
      rect(-42, -52, 84, 26, b.own(0.06), 9) + rect(-46, -32, 92, 18, b.own(-0.08), 6),
      circle(-14, -88, 2.6, b.own(-0.12)) +
        circle(14, -88, 2.6, b.own(-0.12)) +
        circle(0, -74, 2.6, b.own(-0.12)),
    ].join(""),
};

/** Lamps, furniture and what stands beside it, by name. */
export const furniture = { lamp, lantern, candle, book, clock, chair };
