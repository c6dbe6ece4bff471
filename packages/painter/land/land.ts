import { type Lch, lch, lift, mix, toHex } from "../color/color.ts";
import type { Random } from "../random.ts";
import { ellipse, group, num, opacity, path, polygon, stroke } from "../shapes.ts";
import { countOf, type Stage } from "../stage.ts";
import { groundColor } from "./ground-color.ts";
import { drawGroundTexture } from "./ground-texture.ts";
import { below, ridgeLine } from "./ridge.ts";
import { waterColor, winding } from "./water.ts";

/** The ground from `top` to the lower edge, with what grows and lies on it. */
export function drawLand(stage: Stage, top: number): void {
  const random = stage.random.fork("land");
  const { canvas, reading, setting } = stage;
  canvas.layer("ground", bands(stage, random, top));
  if (reading.places.has("field")) canvas.layer("field", furrows(stage, random, top));
  if (setting.water === "river") canvas.layer("river", river(stage, random));
  if (reading.places.has("road") || setting.ground === "paved") canvas.layer("road", road(stage, random));
  canvas.layer("texture", drawGroundTexture(stage, random, top));
}

/** Gentle folds of ground, each a little darker than the one behind it. */
function bands(stage: Stage, random: Random, top: number): string {
  const { height, light } = stage;
  const color = groundColor(stage);
  const space = height - top;
  const count = Math.max(4, Math.round(space / 95));
  const beach = stage.setting.water === "sea" || stage.setting.water === "lake";
  return Array.from({ length: count }, (_, index) => {
    const part = (index / count) ** 1.25;
    const base = top + part * space + (index === 0 ? (beach ? 26 : 4) : 40 * part);
    const amplitude = index === 0 ? (beach ? 40 : 10) : 22 + 70 * part;
    const line = ridgeLine(
      stage,
      { base, amplitude, wavelength: 520 + 420 * part, octaves: 1 },
      random.noise(),
    );
    const near = light.seen(mix(color, shadeOf(color), 0.12 + 0.42 * part), { depth: 0.2 * (1 - part) });
    const fill = stage.canvas.linear([
      { at: 0, color: lift(near, 0.035) },
      { at: 0.5, color: near },
      { at: 1, color: lift(near, -0.03) },
    ]);
    const foam = index === 0 && beach ? shoreLine(stage, line) : "";
    return foam + below(line, height + 4, fill);
  }).join("");
}

function shadeOf({ l, c, h }: Lch): Lch {
  if (c < 0.03) return lch(l - 0.09, c + 0.025, 250);
  return h < 110 ? lch(l - 0.13, c + 0.02, h - 18) : lch(l - 0.14, c, h + 14);
}

/** Foam and shallow water where land and water meet. */
function shoreLine(stage: Stage, line: readonly number[]): string {
  const shift = (by: number) =>
    `M${line.map((value, index) => num(index % 2 === 1 ? value - by : value)).join(" ")}`;
  const shallow = toHex(lift(mix(stage.light.seen(waterColor(stage)), stage.light.haze, 0.35), 0.06));
  const foam = stage.light.ink(lch(0.98, 0.01, 200));
  const sandy = stage.setting.ground === "sand";
  return (
    stroke(shift(2), shallow, sandy ? 46 : 22, opacity(0.35)) +
    stroke(shift(2), shallow, sandy ? 24 : 10, opacity(0.5)) +
    (sandy ? stroke(shift(1), foam, 9, opacity(0.85)) : "")
  );
}

/** Rows of a crop that run together towards the horizon. */
function furrows(stage: Stage, random: Random, top: number): string {
  const { width, height, light } = stage;
  const own = stage.reading.places.get("field")?.[0];
  const color =
    own ??
    random.pick([lch(0.84, 0.14, 90), lch(0.74, 0.14, 128), lch(0.8, 0.13, 100), lch(0.66, 0.13, 305)]);
  const vanish = width * random.range(0.35, 0.65);
  const rows = Math.round((width / 1_000) * 26) + 12;
  const lines: string[] = [];
  const y = top + 16;
  for (let row = -rows; row <= rows; row++) {
    const [near, far] = [vanish + row * 120, vanish + row * 26];
    lines.push(
      polygon(
        `${num(far)},${num(y)} ${num(far + 14)},${num(y)} ${num(near + 66)},${num(height + 4)} ${num(near)},${num(height + 4)}`,
        light.ink(color),
      ),
    );
  }
  return lines.join("");
}

function river(stage: Stage, random: Random): string {
  const { light, canvas } = stage;
  const { outline } = winding(stage, random, 0.22, [8, 150]);
  const color = light.seen(waterColor(stage));
  const fill = canvas.linear([
    { at: 0, color: mix(light.haze, color, 0.3) },
    { at: 1, color: mix(light.skyAt(0.3), color, 0.6) },
  ]);
  const clip = canvas.clip(path(outline, "#000"));
  const bank = toHex(lift(light.seen(groundColor(stage)), -0.12));
  const dashes = Array.from({ length: countOf(stage, 60) }, () => {
    const part = random.next();
    const y = stage.horizon + part ** 1.4 * (stage.height - stage.horizon);
    return ellipse(
      random.range(0, stage.width),
      y,
      12 + 50 * part,
      0.8 + 2.2 * part,
      toHex(lift(light.haze, 0.04)),
      opacity(0.4),
    );
  });
  return stroke(outline, bank, 7, opacity(0.5)) + path(outline, fill) + group(clip, ...dashes);
}

function road(stage: Stage, random: Random): string {
  const paved = stage.setting.ground === "paved" || stage.setting.backdrops.includes("city");
  const { outline, middle } = winding(stage, random, paved ? 0.1 : 0.2, [5, 130]);
  const own = stage.reading.places.get("road")?.[0];
  const color = own ?? (paved ? lch(0.48, 0.015, 270) : lch(0.86, 0.06, 78));
  const edge = stage.light.ink(mix(color, groundColor(stage), 0.5));
  const marks: string[] = [];
  for (let i = 4; paved && i + 3 < middle.length; i += 4) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = middle.slice(i, i + 4);
    marks.push(
      stroke(
        `M${num(x1)} ${num(y1)}L${num(x2)} ${num(y2)}`,
        stage.light.ink(lch(0.96, 0.05, 95)),
        1.5 + (10 * i) / middle.length,
      ),
    );
  }
  return stroke(outline, edge, 8, opacity(0.5)) + path(outline, stage.light.ink(color)) + marks.join("");
}
