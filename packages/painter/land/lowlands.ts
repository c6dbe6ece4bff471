import { lch, mix } from "../color/color.ts";
import type { Random } from "../random.ts";
import { ellipse, group, opacity, path, rect, straight } from "../shapes.ts";
import { countOf, type Stage, shortSide } from "../stage.ts";
import { groundColor, leafColors } from "./ground-color.ts";
import { rise } from "./mountains.ts";
import { below, farInk, lineAt, misty, ridgeLine } from "./ridge.ts";

/** Rolling hills, one behind the other, with groves on them. */
export function drawHills(stage: Stage, random: Random): string {
  const ground = groundColor(stage);
  const high = rise(stage);
  const layers = high > 1.5 ? 5 : 3;
  const own = stage.reading.places.get("hills")?.[0];
  const hills = Array.from({ length: layers }, (_, index) => {
    const nearness = (index + 1) / layers;
    const hue = mix(own ?? ground, lch(0.62, 0.09, 190), 0.42 * (1 - nearness));
    const form = {
      base: stage.horizon - (layers - 1 - index) * 46 * high + 10,
      amplitude: (150 - 50 * nearness) * high,
      wavelength: 620 - 120 * nearness,
      octaves: 1,
    };
    const line = ridgeLine(stage, form, random.noise());
    const depth = 0.62 * (1 - nearness) + 0.08;
    const area = below(line, stage.horizon + 2, misty(stage, hue, depth, 0.25));
    return area + (stage.setting.ground === "grass" ? groves(stage, random, line, depth) : "");
  });
  return hills.join("");
}

/** Small round trees in clumps along a line. */
function groves(stage: Stage, random: Random, line: readonly number[], depth: number): string {
  const colors = leafColors(stage);
  const clumps = Array.from({ length: countOf(stage, 4, 0.8) }, () => {
    const middle = random.range(0, stage.width);
    const count = random.int(1, 6);
    return Array.from({ length: count }, () => {
      const x = middle + random.range(-60, 60);
      const size = random.range(7, 15) * (1.25 - depth);
      const y = lineAt(line, x) + random.range(2, 26);
      const color = mix(random.pick(colors), lch(0.5, 0.1, 150), 0.35);
      return (
        ellipse(
          x + size * 0.5,
          y + 1,
          size * 1.2,
          size * 0.25,
          farInk(stage, lch(0.4, 0.08, 150), depth),
          opacity(0.4),
        ) +
        ellipse(x, y - size, size * 0.8, size * 1.15, farInk(stage, color, depth)) +
        ellipse(
          x - size * 0.2,
          y - size * 1.3,
          size * 0.45,
          size * 0.6,
          farInk(stage, color, depth, 0.05),
          opacity(0.7),
        )
      );
    }).join("");
  });
  return clumps.join("");
}

/** Dunes with sharp crests, their far sides in shadow. */
export function drawDunes(stage: Stage, random: Random): string {
  const color = groundColor(stage);
  const high = rise(stage);
  const dunes = Array.from({ length: 4 }, (_, index) => {
    const nearness = (index + 1) / 4;
    const form = {
      base: stage.horizon - (3 - index) * 34 * high + 12,
      amplitude: (165 - 70 * nearness) * high,
      wavelength: 560 + 120 * nearness,
      octaves: 2,
      sharp: true,
    };
    const line = ridgeLine(stage, form, random.noise());
    const depth = 0.5 * (1 - nearness) + 0.04;
    const tone = mix(color, lch(0.66, 0.12, 45), 0.12 + 0.2 * (1 - nearness));
    const shadow = farInk(stage, mix(tone, lch(0.5, 0.1, 25), 0.45), depth);
    return (
      below(line, stage.horizon + 2, misty(stage, tone, depth, 0.2)) +
      duneShadows(line, stage.horizon + 2, shadow)
    );
  });
  return dunes.join("");
}

/** Between each crest and the dip to its right: the side that the light does not reach. */
function duneShadows(line: readonly number[], bottom: number, fill: string): string {
  const shadows: string[] = [];
  const y = (index: number) => line[2 * index + 1] ?? 0;
  const x = (index: number) => line[2 * index] ?? 0;
  const last = line.length / 2 - 1;
  for (let crest = 3; crest < last - 3; crest++) {
    if (!(y(crest) < y(crest - 1) && y(crest) <= y(crest + 1))) continue;
    let dip = crest + 1;
    while (dip < last && y(dip + 1) > y(dip)) dip++;
    const drop = y(dip) - y(crest);
    if (drop < 12) continue;
    const slope = line.slice(2 * crest, 2 * dip + 2);
    const foot = Math.min(bottom, y(dip) + drop * 0.12);
    const curve = `Q${x(crest) + (x(dip) - x(crest)) * 0.18} ${y(crest) + drop * 0.62} ${x(crest)} ${y(crest)}`;
    shadows.push(path(`${straight(slope)}L${x(dip)} ${foot}${curve}Z`, fill, opacity(0.62)));
  }
  return shadows.join("");
}

/** Table mountains of banded red rock. */
export function drawCanyon(stage: Stage, random: Random): string {
  const high = rise(stage);
  const own = groundColor(stage);
  const rows = [0.55, 0.32, 0.12].map((depth, row) => {
    const count = Math.max(2, Math.round((stage.width / shortSide) * (3 - row * 0.5)));
    return Array.from({ length: count }, (_, index) => {
      const x = ((index + random.range(0.1, 0.9)) / count) * stage.width;
      const height = random.range(130, 330) * high * (1 - row * 0.2);
      return mesa(stage, random, { x, height, width: height * random.range(0.35, 0.95), depth, color: own });
    }).join("");
  });
  return rows.join("");
}

interface Mesa {
  readonly x: number;
  readonly height: number;
  readonly width: number;
  readonly depth: number;
  readonly color: ReturnType<typeof lch>;
}

function mesa(stage: Stage, random: Random, { x, height, width, depth, color }: Mesa): string {
  const { horizon, canvas } = stage;
  const top = horizon - height;
  const skirt = height * 0.42;
  const rough = () => random.range(-7, 7);
  const left = [
    x - width,
    horizon + 2,
    x - width * 0.62 + rough(),
    horizon - skirt,
    x - width * 0.56 + rough(),
    top + height * 0.2,
    x - width * 0.5,
    top,
  ];
  const right = [
    x + width * 0.5,
    top + rough() * 0.4,
    x + width * 0.58 + rough(),
    top + height * 0.22,
    x + width * 0.63 + rough(),
    horizon - skirt,
    x + width,
    horizon + 2,
  ];
  const outline = `${straight([...left, ...right])}Z`;
  const clip = canvas.clip(path(outline, "#000"));
  const bands = Array.from({ length: 7 }, (_, index) => {
    const y = top + (height * (index + random.range(0, 0.7))) / 7;
    return rect(
      x - width,
      y,
      width * 2,
      random.range(5, 17),
      farInk(stage, { ...color, l: color.l - 0.09 }, depth),
      0,
      opacity(0.55),
    );
  });
  const shade = path(
    `${straight([x + width * 0.12, top - 4, ...right, x + width * 0.3, horizon])}Z`,
    farInk(stage, { ...color, l: color.l - 0.14, h: color.h - 12 }, depth),
    opacity(0.6),
  );
  return path(outline, misty(stage, color, depth, 0.3)) + group(clip, ...bands, shade);
}

/** Icebergs with blue shadows. */
export function drawIce(stage: Stage, random: Random): string {
  const high = rise(stage);
  const count = Math.max(3, Math.round((stage.width / shortSide) * 4));
  const bergs = Array.from({ length: count }, (_, index) => {
    const x = ((index + random.range(0.15, 0.85)) / count) * stage.width;
    const [height, half] = [random.range(90, 270) * high, random.range(90, 200)];
    const { horizon } = stage;
    const apex = x + random.range(-0.3, 0.3) * half;
    const depth = random.range(0.08, 0.35);
    const bright = misty(stage, lch(0.96, 0.02, 220), depth, 0.2);
    const blue = farInk(stage, lch(0.78, 0.07, 235), depth);
    const shoulder = [x - half * 0.62, horizon - height * 0.62, x - half * 0.25, horizon - height * 0.72];
    const body = [
      x - half,
      horizon + 2,
      ...shoulder,
      apex,
      horizon - height,
      x + half * 0.45,
      horizon - height * 0.58,
      x + half,
      horizon + 2,
    ];
    const shade = [
      apex,
      horizon - height,
      x + half * 0.45,
      horizon - height * 0.58,
      x + half,
      horizon + 2,
      x + half * 0.25,
      horizon + 2,
      apex + half * 0.12,
      horizon - height * 0.45,
    ];
    return path(`${straight(body)}Z`, bright) + path(`${straight(shade)}Z`, blue);
  });
  return bergs.join("");
}
