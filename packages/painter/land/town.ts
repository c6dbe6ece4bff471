import { type Lch, lch, mix } from "../color/color.ts";
import type { Random } from "../random.ts";
import { num, opacity, path, rect, stroke } from "../shapes.ts";
import { type Stage, shortSide } from "../stage.ts";
import { groundColor } from "./ground-color.ts";
import { rise } from "./mountains.ts";
import { below, farInk, lineAt, misty, ridgeLine } from "./ridge.ts";

/** A skyline of three rows, windows lit after dark. */
export function drawCity(stage: Stage, random: Random): string {
  const high = rise(stage);
  const hue = random.range(225, 330);
  const own = stage.reading.places.get("city")?.[0];
  const rows = [0.62, 0.36, 0.12].map((depth, row) => {
    const buildings: string[] = [];
    let x = random.range(-60, 0);
    while (x < stage.width + 20) {
      const width = random.range(46, 92) * (0.85 + row * 0.12);
      const peak = 1 - Math.min(1, Math.abs(x / stage.width - 0.5) * 1.1) ** 1.6;
      const height =
        (90 + 300 * random.next() ** 1.4 * (0.45 + 0.75 * peak)) * high * (row === 2 ? 0.68 : 1) +
        (2 - row) * 50 * high;
      const color =
        own ??
        lch(random.range(0.46, 0.62) + row * 0.02, random.range(0.03, 0.085), hue + random.range(-40, 40));
      buildings.push(building(stage, random, { x, width, height, color, depth }));
      x += width + (random.chance(0.3) ? random.range(2, 26) : 0);
    }
    return buildings.join("");
  });
  return rows.join("");
}

interface Building {
  readonly x: number;
  readonly width: number;
  readonly height: number;
  readonly color: Lch;
  readonly depth: number;
}

function building(stage: Stage, random: Random, plan: Building): string {
  const { x, width, height, color, depth } = plan;
  const top = stage.horizon - height;
  const face = misty(stage, color, depth, 0.3);
  const shade = farInk(stage, color, depth, -0.045);
  const roof = random.int(0, 5);
  const parts = [
    rect(x, top, width, height + 2, face),
    rect(x + width * 0.68, top, width * 0.32, height + 2, shade, 0, opacity(0.45)),
  ];
  if (roof === 0)
    parts.push(
      path(
        `M${num(x)} ${num(top)}L${num(x + width / 2)} ${num(top - width * 0.55)}L${num(x + width)} ${num(top)}Z`,
        shade,
      ),
    );
  if (roof === 1)
    parts.push(
      rect(x + width * 0.2, top - 18, width * 0.6, 19, face),
      rect(x + width * 0.36, top - 34, width * 0.28, 17, shade),
    );
  if (roof === 2) parts.push(stroke(`M${num(x + width / 2)} ${num(top)}V${num(top - 52)}`, shade, 3.5));
  if (roof === 3)
    parts.push(
      path(
        `M${num(x)} ${num(top + 1)}A${num(width / 2)} ${num(width * 0.42)} 0 0 1 ${num(x + width)} ${num(top + 1)}Z`,
        face,
      ),
    );
  if (roof === 4)
    parts.push(
      path(`M${num(x)} ${num(top + 1)}V${num(top - width * 0.5)}L${num(x + width)} ${num(top + 1)}Z`, face),
    );
  if (depth < 0.5) parts.push(windows(stage, random, plan));
  return parts.join("");
}

/** A grid of windows as two paths: those that are lit and those that are not. */
function windows(stage: Stage, random: Random, { x, width, height, color, depth }: Building): string {
  const { light, horizon } = stage;
  const columns = Math.max(2, Math.floor(width / 17));
  const gap = width / columns;
  const [wide, tall, floor] = [gap * 0.5, 10, 21];
  const [lit, unlit]: [string[], string[]] = [[], []];
  for (let y = horizon - height + 14; y < horizon - 16; y += floor) {
    for (let column = 0; column < columns; column++) {
      const pane = `M${num(x + (column + 0.25) * gap)} ${num(y)}h${num(wide)}v${tall}h-${num(wide)}z`;
      if (random.chance(light.dark ? 0.5 : 0.12)) lit.push(pane);
      else if (random.chance(0.8)) unlit.push(pane);
    }
  }
  const warm = light.ink(light.dark ? lch(0.88, 0.13, random.range(68, 90)) : lch(0.93, 0.05, 90), {
    glows: light.dark,
    depth: depth * 0.5,
  });
  const cool = light.dark
    ? farInk(stage, color, depth, -0.05)
    : farInk(stage, mix(color, lch(0.8, 0.06, 235), 0.5), depth);
  return path(unlit.join(""), cool, opacity(0.7)) + path(lit.join(""), warm, opacity(0.95));
}

/** Small houses with bright roofs on a slope, and a steeple. */
export function drawVillage(stage: Stage, random: Random): string {
  const high = rise(stage);
  const ground = groundColor(stage);
  const rows = [0.34, 0.2, 0.07].map((depth, row) => {
    const base = stage.horizon - (2 - row) * 62 * high;
    const line = ridgeLine(
      stage,
      { base, amplitude: 60 * high, wavelength: 640, octaves: 1 },
      random.noise(),
    );
    const size = (60 + 22 * row) * Math.min(1.5, high);
    const count = Math.round((stage.width / shortSide) * (7.5 - row));
    const church = random.int(1, Math.max(1, count - 2));
    const houses = Array.from({ length: count }, (_, index) => {
      const x = ((index + random.range(0.2, 0.8)) / count) * stage.width;
      return smallHouse(
        stage,
        random,
        x,
        lineAt(line, x) + 10,
        size * random.range(0.85, 1.2),
        depth,
        row === 1 && index === church,
      );
    });
    return below(line, stage.horizon + 2, misty(stage, ground, depth, 0.2)) + houses.join("");
  });
  return rows.join("");
}

function smallHouse(
  stage: Stage,
  random: Random,
  x: number,
  y: number,
  size: number,
  depth: number,
  steeple: boolean,
): string {
  const { light } = stage;
  const wall = random.pick([
    lch(0.95, 0.025, 85),
    lch(0.9, 0.05, 75),
    lch(0.88, 0.05, 40),
    lch(0.9, 0.03, 230),
  ]);
  const roof =
    stage.setting.season === "winter"
      ? lch(0.95, 0.01, 240)
      : random.pick([lch(0.56, 0.15, 32), lch(0.5, 0.12, 25), lch(0.48, 0.06, 260), lch(0.6, 0.13, 48)]);
  const [w, h] = [size * 0.56, size * 0.62];
  const pane = light.ink(light.dark ? lch(0.88, 0.14, 80) : lch(0.55, 0.06, 250), {
    glows: light.dark,
    depth: light.dark ? 0 : depth,
  });
  const parts = [
    rect(x - w, y - h, w * 2, h, farInk(stage, wall, depth)),
    rect(x + w * 0.2, y - h, w * 0.8, h, farInk(stage, wall, depth, -0.08)),
    path(
      `M${num(x - w * 1.15)} ${num(y - h)}L${num(x - w * 0.5)} ${num(y - h - size * 0.42)}L${num(x + w * 0.75)} ${num(y - h - size * 0.42)}L${num(x + w * 1.15)} ${num(y - h)}Z`,
      farInk(stage, roof, depth),
    ),
    rect(x - w * 0.66, y - h * 0.66, w * 0.34, h * 0.34, pane),
    rect(x - w * 0.08, y - h * 0.66, w * 0.34, h * 0.34, pane),
    rect(x + w * 0.5, y - h * 0.66, w * 0.3, h * 0.34, pane),
  ];
  if (!steeple) return parts.join("");
  const tower = size * 1.5;
  return [
    rect(x - w * 0.3, y - tower, w * 0.62, tower, farInk(stage, wall, depth)),
    path(
      `M${num(x - w * 0.42)} ${num(y - tower)}L${num(x)} ${num(y - tower - size * 0.95)}L${num(x + w * 0.44)} ${num(y - tower)}Z`,
      farInk(stage, roof, depth),
    ),
    rect(x - w * 0.1, y - tower * 0.86, w * 0.22, h * 0.4, pane, w * 0.1),
    ...parts,
  ].join("");
}
