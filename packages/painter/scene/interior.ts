import { castSubjects, drawCast } from "../cast/cast.ts";
import { type Lch, lch, lift, mix, toHex } from "../color/color.ts";
import { circle, ellipse, group, num, opacity, path, rect, stroke } from "../shapes.ts";
import { drawStars } from "../sky/sky.ts";
import { vignette } from "../sky/weather.ts";
import { glow, type Stage } from "../stage.ts";

const wallColors: readonly Lch[] = [
  lch(0.84, 0.05, 70),
  lch(0.78, 0.06, 200),
  lch(0.74, 0.07, 25),
  lch(0.8, 0.055, 130),
  lch(0.6, 0.07, 255),
];

/** A still life: a wall, a window if there is room, a table and what stands on it. */
export function drawInterior(stage: Stage): void {
  const { canvas, light, width, height, reading } = stage;
  const random = stage.random.fork("interior");
  const own = reading.places.get("interior");
  const wall = random.pick(wallColors);
  const edge = height - Math.min(height * 0.3, width * 0.75);
  canvas.layer(
    "wall",
    rect(
      0,
      0,
      width,
      height,
      canvas.linear([
        { at: 0, color: light.seen(lift(wall, -0.05)) },
        { at: 1, color: light.seen(lift(wall, 0.05)) },
      ]),
    ),
    stripes(stage, wall, edge),
  );
  const windowX = stage.sun.x < width / 2 ? width * 0.24 : width * 0.76;
  canvas.layer("window", windowIn(stage, windowX, edge));
  const wood =
    own?.[0] ??
    random.pick([lch(0.56, 0.09, 55), lch(0.48, 0.07, 45), lch(0.7, 0.07, 68), lch(0.9, 0.02, 80)]);
  canvas.layer("table", table(stage, wood, edge));
  const zone = {
    left: width * 0.06,
    right: width * 0.94,
    top: edge + (height - edge) * 0.3,
    bottom: height - (height - edge) * 0.3,
    kind: "ground" as const,
    scale: 1.25,
  };
  const actors = castSubjects(stage, () => zone);
  drawCast(stage, actors);
  canvas.layer("vignette", vignette(stage));
}

function stripes({ width, light }: Stage, wall: Lch, edge: number): string {
  const ink = light.ink(lift(wall, 0.03));
  const parts: string[] = [];
  for (let x = 0; x < width; x += 110) parts.push(rect(x, 0, 55, edge, ink, 0, opacity(0.45)));
  return parts.join("");
}

/** A window with the sky of the hour, its light on the wall. */
function windowIn(stage: Stage, x: number, edge: number): string {
  const { canvas, light, width, height } = stage;
  const wide = Math.min(width * 0.34, 340);
  const tall = Math.min(edge * 0.62, wide * 1.35);
  if (tall < 150) return "";
  const top = edge * 0.14;
  const left = x - wide / 2;
  const sky = canvas.linear(
    Array.from({ length: 7 }, (_, index) => ({ at: index / 6, color: light.skyAt(index / 6) })),
  );
  const clip = canvas.clip(rect(left, top, wide, tall, "#000"));
  const disc = circle(x + wide * 0.16, top + tall * 0.36, wide * 0.12, toHex(light.sun));
  const halo = circle(x + wide * 0.16, top + tall * 0.36, wide * 0.5, glow(stage, toHex(light.sun), 0.6));
  const hill = (by: number, depth: number) =>
    path(
      `M${num(left)} ${num(top + tall * by)}q${num(wide * 0.3)} ${num(-tall * 0.14)} ${num(wide * 0.55)} 0t${num(wide * 0.5)} ${num(-tall * 0.04)}V${num(top + tall)}H${num(left)}Z`,
      light.ink(lch(0.6, 0.11, 145), { depth }),
    );
  const night = stage.setting.time === "night" ? drawStars(stage, 0.8, top + tall * 0.7) : "";
  const frame = light.ink(lch(0.96, 0.015, 85));
  const bars = rect(x - 6, top, 12, tall, frame) + rect(left, top + tall * 0.46, wide, 10, frame);
  const border = `<rect x="${num(left)}" y="${num(top)}" width="${num(wide)}" height="${num(tall)}" fill="none" stroke="${frame}" stroke-width="20"/>`;
  const sill =
    rect(left - 24, top + tall, wide + 48, 20, frame, 5) +
    rect(left - 14, top + tall + 20, wide + 28, 8, light.ink(lch(0.6, 0.03, 60)), 3, opacity(0.4));
  const beam = path(
    `M${num(left)} ${num(top + tall)}H${num(left + wide)}L${num(left + wide + (width / 2 - x) * 0.9)} ${num(height)}H${num(left + (width / 2 - x) * 0.9 - 90)}Z`,
    toHex(light.sun),
    opacity(light.dark ? 0.05 : 0.1),
  );
  return (
    group(clip, rect(left, top, wide, tall, sky), night, halo, disc, hill(0.74, 0.45), hill(0.86, 0.2)) +
    border +
    bars +
    sill +
    beam
  );
}

function table({ canvas, light, width, height, random }: Stage, wood: Lch, edge: number): string {
  const own = random.fork("table");
  const fill = canvas.linear([
    { at: 0, color: light.seen(lift(wood, 0.07)) },
    { at: 1, color: light.seen(lift(wood, -0.05)) },
  ]);
  const grain = Array.from({ length: Math.round(width / 55) }, () => {
    const y = edge + own.next() ** 1.2 * (height - edge);
    const length = own.range(90, 300);
    return stroke(
      `M${num(own.range(-80, width))} ${num(y)}q${num(length / 2)} ${num(own.range(-7, 7))} ${num(length)} 0`,
      light.ink(lift(wood, own.chance(0.5) ? -0.06 : 0.1)),
      2.2,
      opacity(0.5),
    );
  });
  const shine = ellipse(
    width / 2,
    edge + (height - edge) * 0.4,
    width * 0.42,
    (height - edge) * 0.3,
    toHex(mix(light.seen(wood), lch(0.95, 0.03, 80), 0.35)),
    opacity(0.22),
  );
  return (
    rect(0, edge, width, height - edge, fill) +
    shine +
    grain.join("") +
    rect(0, edge, width, 7, light.ink(lift(wood, 0.13)))
  );
}
