import { type Lch, lch, lift, mix, toHex } from "../color/color.ts";
import type { Random } from "../random.ts";
import { group, groupOpacity, num, opacity, path, rect, smooth } from "../shapes.ts";
import { countOf, type Stage, shortSide } from "../stage.ts";

/** The water's own colour in full daylight. */
export function waterColor({ reading, setting }: Stage): Lch {
  const own = (["sea", "lake", "river", "waves", "waterfall"] as const).flatMap(
    (place) => reading.places.get(place) ?? [],
  );
  if (own[0] !== undefined) return own[0];
  if (setting.ground === "sand" && setting.backdrops.every((place) => place !== "mountains"))
    return lch(0.7, 0.11, 205);
  return setting.water === "sea" ? lch(0.52, 0.11, 235) : lch(0.58, 0.09, 225);
}

/** Still or moving water from the horizon down to `bottom`: the sky in it, what stands behind it upside down, glints. */
export function drawWater(stage: Stage, bottom: number, mirrored: string): string {
  const { width, horizon, light, canvas, reading } = stage;
  const random = stage.random.fork("water");
  const color = light.seen(waterColor(stage));
  const height = bottom - horizon;
  const fill = canvas.linear([
    { at: 0, color: mix(light.haze, color, 0.28) },
    { at: 0.3, color: mix(light.skyAt(0.7), color, 0.55) },
    { at: 1, color: mix(light.skyAt(0.1), lift(color, -0.04), 0.72) },
  ]);
  const clip = canvas.clip(rect(0, horizon, width, height, "#000"));
  const rough = reading.places.has("waves") || reading.weather.has("storm") || reading.weather.has("wind");
  const reflection =
    mirrored === "" || rough
      ? ""
      : group(
          `transform="translate(0 ${num(horizon * 1.72)}) scale(1 -0.72)" ${groupOpacity(0.42)}`,
          mirrored,
        );
  return [
    rect(0, horizon, width, height, fill),
    group(
      clip,
      reflection,
      glitter(stage, random, height),
      ripples(stage, random, height, color),
      rough ? waves(stage, random, height, color) : "",
    ),
    rect(0, horizon - 1, width, 3, toHex(lift(light.haze, 0.03)), 0, opacity(0.5)),
  ].join("");
}

/** Dashes that are short and thick near the viewer and fine at the horizon, as one path each of light and dark. */
function ripples(stage: Stage, random: Random, height: number, color: Lch): string {
  const { width, horizon, light } = stage;
  const [bright, dim]: [string[], string[]] = [[], []];
  for (let index = 0; index < countOf(stage, 90); index++) {
    const part = random.next() ** 1.5;
    const y = horizon + 4 + part * height;
    const length = random.range(26, 80) * (0.5 + part * 1.5);
    (index % 2 === 0 ? bright : dim).push(lens(random.range(-40, width), y, length, 1.2 + 4.4 * part));
  }
  return (
    path(bright.join(""), toHex(mix(lift(light.haze, 0.05), color, 0.15)), opacity(0.34)) +
    path(dim.join(""), toHex(lift(color, -0.08)), opacity(0.26))
  );
}

function lens(x: number, y: number, length: number, thick: number): string {
  const [l, t] = [num(length), num(thick)];
  return `M${num(x)} ${num(y)}q${num(length / 2)} -${t} ${l} 0q-${num(length / 2)} ${t} -${l} 0z`;
}

/** The sun's or moon's path on the water. */
function glitter(stage: Stage, random: Random, height: number): string {
  const { sun, horizon, light, reading } = stage;
  const hidden = ["storm", "rain", "fog"].some((weather) => reading.weather.has(weather as "rain"));
  if (hidden || sun.y > horizon + sun.radius) return "";
  const glints: string[] = [];
  const rows = Math.round(height / 9);
  for (let row = 0; row < rows; row++) {
    const part = row / rows;
    const spread = sun.radius * (0.35 + 1.25 * part);
    for (let index = 0; index < 2; index++) {
      const length = spread * random.range(0.35, 1.25);
      const x = sun.x + random.range(-0.6, 0.6) * spread - length / 2;
      glints.push(lens(x, horizon + 3 + part * height + random.range(-3, 3), length, 1.6 + 4.5 * part));
    }
  }
  return path(glints.join(""), toHex(light.sun), opacity(0.72));
}

/** Rows of breaking waves. */
function waves(stage: Stage, random: Random, height: number, color: Lch): string {
  const { width, light } = stage;
  const rows = Math.max(4, Math.round((height / shortSide) * 15));
  return Array.from({ length: rows }, (_, row) => {
    const part = ((row + 0.8) / rows) ** 1.3;
    const y = stage.horizon + part * height;
    const length = 70 + 170 * part;
    const rise = 8 + 34 * part;
    const shift = random.range(0, length);
    const crests: string[] = [];
    for (let x = -length - shift; x < width + length; x += length) {
      const high = rise * random.range(0.75, 1.2);
      crests.push(
        `Q${num(x + length * 0.42)} ${num(y - high * 0.2)} ${num(x + length * 0.55)} ${num(y - high)}Q${num(x + length * 0.66)} ${num(y + high * 0.15)} ${num(x + length)} ${num(y)}`,
      );
    }
    const start = `M${num(-length - shift)} ${num(y)}`;
    const fill = toHex(mix(lift(color, row % 2 === 0 ? 0.02 : -0.04), light.haze, 0.4 * (1 - part)));
    const foam = toHex(mix(lch(0.97, 0.01, 220), light.seen(lch(0.95, 0.02, 220)), 0.7));
    const line = start + crests.join("");
    return (
      path(`${line}V${num(y + height * 0.3)}H${num(-length - shift)}Z`, fill) +
      `<path d="${line}" fill="none" stroke="${foam}" stroke-width="${num(1.5 + 3.5 * part)}" stroke-opacity="0.75"/>`
    );
  }).join("");
}

/** A river or road that winds from the horizon to the lower edge; `widths` are those at both ends. */
export function winding(
  stage: Stage,
  random: Random,
  bend: number,
  widths: readonly [number, number],
): { outline: string; middle: number[] } {
  const { width, height, horizon } = stage;
  const start = width * random.range(0.4, 0.6);
  const side = random.chance(0.5) ? 1 : -1;
  const depth = height - horizon + 40;
  const reach = Math.min(width, shortSide * 1.6);
  const [left, right, middle]: [number[], number[], number[]] = [[], [], []];
  for (let step = 0; step <= 12; step++) {
    const part = (step / 12) ** 1.7;
    const x = start + side * Math.sin((step / 12) * Math.PI * 1.7) * bend * reach * (0.12 + part);
    const half = widths[0] + (widths[1] - widths[0]) * part;
    const y = horizon + part * depth;
    middle.push(x, y);
    left.push(x - half, y);
    right.push(x + half, y);
  }
  const back: number[] = [];
  for (let index = right.length - 2; index >= 0; index -= 2)
    back.push(right[index] ?? 0, right[index + 1] ?? 0);
  return { outline: `${smooth(left)}L${smooth(back).slice(1)}Z`, middle };
}
