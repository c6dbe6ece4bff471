import { type Lch, lch, mix } from "../color/color.ts";
import type { Random } from "../random.ts";
import { circle, opacity, path, straight } from "../shapes.ts";
import { glow, type Stage, shortSide } from "../stage.ts";
import { earthy, groundColor } from "./ground-color.ts";
import { below, farInk, misty, ridgeLine } from "./ridge.ts";

const rock = lch(0.5, 0.045, 265);
const snow = lch(0.97, 0.012, 240);

/** How much higher than in a square picture the land rises: tall pictures are filled. */
export function rise(stage: Stage): number {
  return Math.min(4.2, Math.max(0.75, (stage.horizon / 620) ** 0.8));
}

/** Ranges in the haze, great peaks with snow before them, and foothills. */
export function drawMountains(stage: Stage, random: Random): string {
  const named = stage.reading.places.get("mountains")?.[0];
  const own = named === undefined ? undefined : earthy(named);
  const color = own ?? mix(rock, lch(0.5, 0.07, random.pick([230, 265, 300, 200])), 0.5);
  const high = rise(stage);
  const ranges = Math.min(7, Math.max(2, Math.round(high * 2)));
  const far = Array.from({ length: ranges }, (_, index) => {
    const depth = 0.8 - (0.28 * index) / (ranges - 1);
    const base = stage.horizon - ((ranges - 1 - index) * 95 + 55) * high;
    const form = { base, amplitude: 150 * high, wavelength: 330, octaves: 4, sharp: true };
    return below(ridgeLine(stage, form, random.noise()), stage.horizon + 2, misty(stage, color, depth, 0.5));
  });
  const peaks = drawPeaks(stage, random, color, high);
  const foothill = mix(groundColor(stage), color, 0.45);
  const form = { base: stage.horizon - 8, amplitude: 70, wavelength: 420, octaves: 3 };
  const near = below(
    ridgeLine(stage, form, random.noise()),
    stage.horizon + 2,
    misty(stage, foothill, 0.22, 0.25),
  );
  return [...far, ...peaks, near].join("");
}

function drawPeaks(stage: Stage, random: Random, color: Lch, high: number): string[] {
  const count = Math.max(2, Math.round((stage.width / shortSide) * 2.2) + random.int(0, 1));
  const slots = Array.from({ length: count }, (_, index) => ({
    x: ((index + 0.5 + random.range(-0.25, 0.25)) / count) * stage.width,
    height: random.range(190, 330) * high,
  }));
  const tallest = slots[random.int(0, count - 1)];
  if (tallest !== undefined) tallest.height = 390 * high;
  slots.sort((a, b) => b.height - a.height);
  return slots.map(({ x, height }, index) => {
    const depth = Math.max(0.12, 0.38 - index * 0.06);
    return drawPeak(stage, random, { x, height, width: height * random.range(0.85, 1.15), color, depth });
  });
}

interface Peak {
  readonly x: number;
  readonly height: number;
  readonly width: number;
  readonly color: Lch;
  readonly depth: number;
}

type Point = readonly [number, number];

/** A peak of two sides, one in the light, with snow down to a ragged line. */
function drawPeak(stage: Stage, random: Random, { x, height, width, color, depth }: Peak): string {
  const top = stage.horizon - height;
  const steps = 10;
  const edge = (lean: number, rough: number): Point[] =>
    Array.from({ length: steps + 1 }, (_, index) => {
      const part = index / steps;
      const jag = index === 0 ? 0 : random.range(-rough, rough) * (0.4 + part);
      return [x + lean * width * part ** 1.12 + jag, top + (height + 2) * part] as const;
    });
  const [left, middle, right] = [edge(-1, 15), edge(random.range(-0.12, 0.12), 32), edge(1, 15)];
  const sunny = stage.sun.x < x;
  const side = (outer: readonly Point[], lit: boolean) => {
    const shade = misty(
      stage,
      lit ? { ...color, l: color.l + 0.1 } : { ...color, l: color.l - 0.07 },
      depth,
      0.42,
    );
    const white = farInk(stage, lit ? snow : mix(snow, lch(0.72, 0.06, 262), 0.62), depth * 0.7);
    const line = random.int(3, 4);
    const cap = height < 170 ? "" : path(outline(snowcap(random, outer, middle, line)), white);
    return path(outline([...outer, ...middle.toReversed()]), shade) + cap;
  };
  return side(right, !sunny) + side(left, sunny);
}

function snowcap(random: Random, outer: readonly Point[], middle: readonly Point[], line: number): Point[] {
  const [from, to] = [outer[line] ?? [0, 0], middle[line] ?? [0, 0]];
  const drop = (middle[1]?.[1] ?? 0) - (middle[0]?.[1] ?? 0);
  const ragged = [0.2, 0.4, 0.6, 0.8].map((part, index): Point => {
    const deep = (index % 2 === 0 ? 1 : -0.9) * random.range(0.5, 1.2) * drop;
    return [from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part + deep];
  });
  return [...outer.slice(0, line + 1), ...ragged, ...middle.slice(0, line + 1).toReversed()];
}

function outline(points: readonly Point[]): string {
  return `${straight(points.flat())}Z`;
}

/** A smoking cone with glowing lava. */
export function drawVolcano(stage: Stage, random: Random): string {
  const { horizon, width, light, canvas } = stage;
  const high = rise(stage);
  const [x, height, half, mouth] = [
    width * random.range(0.4, 0.6),
    400 * high,
    400 * Math.min(1.3, high),
    52,
  ];
  const top = horizon - height;
  const color = stage.reading.places.get("volcano")?.[0] ?? lch(0.4, 0.05, 20);
  const hot = lch(0.75, 0.2, 45);
  const puff = canvas.linear([
    { at: 0, color: light.seen(lch(0.62, 0.02, 300)), opacity: 0.85 },
    { at: 1, color: light.seen(lch(0.4, 0.04, 20)), opacity: 0.8 },
  ]);
  const smoke = Array.from({ length: 13 }, (_, index) => {
    const part = index / 12;
    return circle(
      x + 150 * part ** 1.5 + random.range(-40, 40),
      top - 20 - part * Math.min(330, top * 0.8),
      36 + 74 * part,
      puff,
      opacity(0.9 - part * 0.5),
    );
  });
  const cone = (from: number, to: number) =>
    `M${x + from * mouth} ${top}C${x + from * mouth * 2} ${top + height * 0.45} ${x + from * half * 0.55} ${horizon - 60} ${x + from * half} ${horizon + 2}L${x + to * half} ${horizon + 2}C${x + to * half * 0.3} ${horizon - 90} ${x + to * mouth} ${top + height * 0.4} ${x + to * mouth} ${top}Z`;
  const streams = [-0.5, 0.1, 0.62].map((at, index) => {
    const [sx, length] = [x + at * mouth, height * (0.35 + 0.17 * index)];
    const wide = 9 + 5 * (index % 2);
    const ink = light.ink(index === 1 ? lch(0.82, 0.18, 70) : hot, { glows: true });
    return path(
      `M${sx - wide} ${top}C${sx - wide + at * 30} ${top + length * 0.5} ${sx + at * 90 - wide} ${top + length * 0.6} ${sx + at * 120} ${top + length}C${sx + at * 110 + wide} ${top + length * 0.6} ${sx + wide} ${top + length * 0.4} ${sx + wide} ${top}Z`,
      ink,
    );
  });
  return [
    circle(x, top - 10, 330 * Math.min(1.2, high), glow(stage, light.ink(hot, { glows: true }), 0.65)),
    ...smoke,
    path(cone(-1, 1), misty(stage, color, 0.1, 0.3)),
    path(cone(1, 0.06), misty(stage, { ...color, l: color.l - 0.08 }, 0.1, 0.3)),
    ...streams,
    `<ellipse cx="${x}" cy="${top}" rx="${mouth}" ry="11" fill="${light.ink(lch(0.88, 0.16, 85), { glows: true })}"/>`,
  ].join("");
}
