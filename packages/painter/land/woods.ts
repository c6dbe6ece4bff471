import { type Lch, lch, mix } from "../color/color.ts";
import type { Random } from "../random.ts";
import { circle, num, opacity, path, stroke } from "../shapes.ts";
import type { Stage } from "../stage.ts";
import { leafColors } from "./ground-color.ts";
import { rise } from "./mountains.ts";
import { below, farInk, lineAt, misty, ridgeLine } from "./ridge.ts";

/** A wood seen from its edge: rows of trees, the farther ones pale. */
export function drawWoods(stage: Stage, random: Random, kind: "forest" | "pinewood" | "jungle"): string {
  const high = rise(stage);
  const rows = high > 1.5 ? 6 : 4;
  const own = stage.reading.places.get(kind)?.[0];
  const backed = stage.setting.backdrops.some(
    (place) => place === "mountains" || place === "waterfall" || place === "hills" || place === "city",
  );
  const size = (backed ? 0.55 : 1) * high;
  const layers = Array.from({ length: rows }, (_, row) => {
    const nearness = (row + 1) / rows;
    const depth = 0.66 * (1 - nearness) + 0.08;
    const base = stage.horizon - (rows - 1 - row) * 30 * size;
    const line = ridgeLine(
      stage,
      { base, amplitude: 46 * size, wavelength: 420, octaves: 2 },
      random.noise(),
    );
    const trees = treeRow(stage, random, { kind, line, depth, height: (120 + 90 * nearness) * size, own });
    const earth = own ?? floorColor(stage, kind);
    return trees + below(line, stage.horizon + 2, misty(stage, earth, depth, 0.3));
  });
  return layers.join("");
}

function floorColor(stage: Stage, kind: string): Lch {
  if (kind !== "forest") return stage.setting.season === "winter" ? lch(0.86, 0.03, 230) : lch(0.5, 0.1, 155);
  return mix(leafColors(stage)[0] ?? lch(0.6, 0.1, 140), lch(0.55, 0.1, 140), 0.35);
}

interface Row {
  readonly kind: "forest" | "pinewood" | "jungle";
  readonly line: readonly number[];
  readonly depth: number;
  readonly height: number;
  readonly own: Lch | undefined;
}

function treeRow(stage: Stage, random: Random, { kind, line, depth, height, own }: Row): string {
  const trees: string[] = [];
  const gap = height * (kind === "forest" ? 0.36 : 0.25);
  const colors = own === undefined ? leafColors(stage) : [own];
  for (let x = -30; x < stage.width + 30; x += gap * random.range(0.55, 1.35)) {
    const y = lineAt(line, x) + 8;
    const tall = height * random.range(0.62, 1.12);
    if (kind === "pinewood" || (kind === "forest" && stage.setting.season === "winter")) {
      trees.push(farPine(stage, random, x, y, tall, depth, own));
    } else if (kind === "jungle") {
      trees.push(
        random.chance(0.4)
          ? farPalm(stage, random, x, y, tall, depth, own)
          : crown(stage, random, x, y, tall, depth, own ?? lch(0.56, 0.13, random.range(140, 162))),
      );
    } else if (random.chance(0.16)) {
      trees.push(farPine(stage, random, x, y, tall * 1.1, depth, own));
    } else {
      trees.push(crown(stage, random, x, y, tall, depth, random.pick(colors)));
    }
  }
  return trees.join("");
}

/** A conifer: jagged tiers, one half darker, with snow in winter. */
function farPine(
  stage: Stage,
  random: Random,
  x: number,
  y: number,
  height: number,
  depth: number,
  own: Lch | undefined,
): string {
  const half = height * random.range(0.17, 0.23);
  const color = own ?? mix(lch(0.46, 0.085, 162), lch(0.52, 0.08, 145), random.next());
  const tiers = 5;
  const side = (direction: number) => {
    const parts = [`M${num(x)} ${num(y - height)}`];
    for (let tier = 1; tier <= tiers; tier++) {
      const part = tier / tiers;
      const out = x + direction * half * (0.25 + 0.75 * part);
      const level = y - height * (1 - part) * 0.94;
      parts.push(`L${num(out)} ${num(level)}`);
      if (tier < tiers)
        parts.push(`L${num(x + direction * half * part * 0.5)} ${num(level - height * 0.035)}`);
    }
    return `${parts.join("")}L${num(x)} ${num(y)}Z`;
  };
  const winter = stage.setting.season === "winter";
  const light = winter ? mix(color, lch(0.95, 0.015, 235), 0.5) : color;
  return (
    path(side(-1), farInk(stage, light, depth, 0.02)) + path(side(1), farInk(stage, color, depth, -0.035))
  );
}

/** A broad-leaved tree: a trunk under a crown of overlapping discs, lighter towards the top. */
function crown(
  stage: Stage,
  random: Random,
  x: number,
  y: number,
  height: number,
  depth: number,
  color: Lch,
): string {
  const radius = height * random.range(0.2, 0.26);
  const dark = farInk(stage, color, depth, -0.05);
  const middle = farInk(stage, color, depth);
  const bright = farInk(stage, color, depth, 0.05);
  const trunk = stroke(
    `M${num(x)} ${num(y)}V${num(y - height * 0.5)}`,
    farInk(stage, lch(0.4, 0.05, 50), depth),
    height * 0.045,
  );
  return (
    trunk +
    circle(x - radius * 0.62, y - height * 0.52, radius * 0.8, dark) +
    circle(x + radius * 0.66, y - height * 0.5, radius * 0.82, dark) +
    circle(x, y - height * 0.68, radius * 1.08, middle) +
    circle(x - radius * 0.3, y - height * 0.76, radius * 0.62, bright, opacity(0.8))
  );
}

function farPalm(
  stage: Stage,
  random: Random,
  x: number,
  y: number,
  height: number,
  depth: number,
  own: Lch | undefined,
): string {
  const ink = farInk(stage, own ?? lch(0.54, 0.13, random.range(135, 158)), depth);
  const lean = random.range(-0.12, 0.12) * height;
  const [tx, ty] = [x + lean, y - height];
  const leaf = height * 0.34;
  const leaves = [-170, -140, -100, -60, -20, 12, -200].map((angle) => {
    const radians = ((angle + random.range(-10, 10)) * Math.PI) / 180;
    const [ex, ey] = [tx + Math.cos(radians) * leaf, ty + Math.sin(radians) * leaf * 0.7 + leaf * 0.3];
    const [mx, my] = [(tx + ex) / 2, Math.min(ty, ey) - leaf * 0.22];
    return path(
      `M${num(tx)} ${num(ty)}Q${num(mx)} ${num(my - leaf * 0.12)} ${num(ex)} ${num(ey)}Q${num(mx)} ${num(my + leaf * 0.2)} ${num(tx)} ${num(ty)}Z`,
      ink,
    );
  });
  const trunk = stroke(
    `M${num(x)} ${num(y)}Q${num(x)} ${num(y - height * 0.6)} ${num(tx)} ${num(ty)}`,
    farInk(stage, lch(0.5, 0.05, 65), depth),
    height * 0.04,
  );
  return trunk + leaves.join("");
}
