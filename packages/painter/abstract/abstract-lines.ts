import { type Lch, lift, mix } from "../color/color.ts";
import type { Random } from "../random.ts";
import { circle, num, opacity, path, rect, smooth, stroke } from "../shapes.ts";
import { countOf, type Stage } from "../stage.ts";
import type { Scheme } from "./abstract-scheme.ts";

function ground(stage: Stage, { ground: color }: Scheme): string {
  const { canvas, light, width, height } = stage;
  const fill = canvas.linear(
    [
      { at: 0, color: light.seen(lift(color, 0.03)) },
      { at: 1, color: light.seen(lift(color, -0.05)) },
    ],
    [0, 0, 1, 1],
  );
  return rect(0, 0, width, height, fill);
}

/** A colour between those of a list; 0 is the first, 1 the last. */
export function along(colors: readonly Lch[], part: number): Lch {
  const place = Math.min(0.999, Math.max(0, part)) * (colors.length - 1);
  const index = Math.floor(place);
  const [from, to] = [colors[index], colors[index + 1] ?? colors[index]];
  if (from === undefined || to === undefined) throw new RangeError("no colours");
  const between = mix(from, to, place - index);
  // Half-way between opposite hues lies grey; the colours of a picture are to stay colours.
  return { ...between, c: Math.max(between.c, (from.c + (to.c - from.c) * (place - index)) * 0.8) };
}

/** Bands of silk: a family of curves that never cross, each band a shade further. */
export function drawSilk(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light, canvas } = stage;
  const noise = random.noise();
  const upright = height > width * 1.4;
  const [length, breadth] = upright ? [height, width] : [width, height];
  const count = Math.round(24 + 14 * stage.detail);
  const curve = (index: number) => {
    const points: number[] = [];
    for (let step = -1; step <= 17; step++) {
      const t = step / 16;
      const swing =
        noise(t * 1.35 + index * 0.012, index * 0.026) * 0.3 + noise(t * 3.1, index * 0.05 + 9) * 0.07;
      const pinch = 0.62 + 0.5 * noise(t * 1.1 + 40, index * 0.02);
      const across = breadth * (0.5 + swing + ((index / count) * 1.7 - 0.85) * pinch);
      points.push(...(upright ? [across, t * length] : [t * length, across]));
    }
    return points;
  };
  const curves = Array.from({ length: count + 1 }, (_, index) => curve(index));
  const bands = curves.slice(0, -1).map((from, index) => {
    const to = reversed(curves[index + 1] ?? from);
    const part = index / count;
    const color = along(scheme.colors, (Math.sin(part * Math.PI * 2.2 + 1) + 1) / 2);
    const fill = canvas.linear(
      [
        { at: 0, color: light.seen(lift(color, 0.07)) },
        { at: 0.5, color: light.seen(lift(color, index % 2 === 0 ? -0.05 : 0)) },
        { at: 1, color: light.seen({ ...lift(color, 0.05), h: color.h + 18 }) },
      ],
      upright ? [0, 0, 0, 1] : [0, 0, 1, 0],
    );
    return (
      path(`${smooth(from)}L${smooth(to).slice(1)}Z`, fill) +
      stroke(smooth(from), light.ink(lift(color, 0.14)), 1.2, opacity(0.5))
    );
  });
  const corner = upright ? [width, height] : [width, height];
  const rest = (from: readonly number[], color: Lch, far: boolean) => {
    const [cx = 0, cy = 0] = corner;
    const end = upright
      ? `L${far ? num(cx) : 0} ${num(cy * 1.1)}L${far ? num(cx) : 0} ${num(-cy * 0.1)}Z`
      : `L${num(cx * 1.1)} ${far ? num(cy) : 0}L${num(-cx * 0.1)} ${far ? num(cy) : 0}Z`;
    return path(smooth(from) + end, light.ink(lift(color, -0.1)));
  };
  const [first, last] = [curves[0] ?? [], curves.at(-1) ?? []];
  const edges =
    rest(first, along(scheme.colors, (Math.sin(1) + 1) / 2), false) +
    rest(last, along(scheme.colors, (Math.sin(Math.PI * 2.2 + 1) + 1) / 2), true);
  return ground(stage, scheme) + edges + bands.join("");
}

function reversed(points: readonly number[]): number[] {
  const back: number[] = [];
  for (let index = points.length - 2; index >= 0; index -= 2)
    back.push(points[index] ?? 0, points[index + 1] ?? 0);
  return back;
}

/** Many threads that follow one current. */
export function drawField(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light } = stage;
  const noise = random.noise();
  const turn = random.range(0, Math.PI * 2);
  const zoom = random.range(700, 1_300);
  const threads = Array.from({ length: Math.min(2_400, countOf(stage, 900)) }, () => {
    let [x, y] = [random.range(-0.05, 1.05) * width, random.range(-0.05, 1.05) * height];
    const part = noise(x / 900 + 30, y / 900) * 0.5 + 0.5;
    const color = along(scheme.colors, part * 0.85 + random.range(0, 0.15));
    const points = [x, y];
    const steps = random.int(7, 22);
    for (let step = 0; step < steps; step++) {
      const angle = turn + noise(x / zoom, y / zoom) * Math.PI * 1.25;
      x += Math.cos(angle) * 24;
      y += Math.sin(angle) * 24;
      points.push(x, y);
    }
    const thick = random.chance(0.12) ? random.range(8, 17) : random.range(1.6, 7);
    return {
      thick,
      markup: stroke(smooth(points), light.ink(color), thick, opacity(random.range(0.7, 0.97))),
    };
  });
  threads.sort((a, b) => b.thick - a.thick);
  return ground(stage, scheme) + threads.map(({ markup }) => markup).join("");
}

/** Layers of waves under a disc. */
export function drawWaves(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light, canvas } = stage;
  const noise = random.noise();
  const count = Math.round(9 + 3 * stage.detail + Math.max(0, height / width - 1) * 3);
  const [x, y] = [width * random.range(0.3, 0.7), height * random.range(0.2, 0.3)];
  const disc = along(scheme.colors, 0.75);
  const radius = Math.min(width, height) * 0.17;
  const rings = [1.9, 1.45, 1].map((size, index) =>
    circle(x, y, radius * size, light.ink(disc), opacity([0.14, 0.24, 0.95][index] ?? 1)),
  );
  const layers = Array.from({ length: count }, (_, index) => {
    const part = index / (count - 1);
    const base = height * (0.3 + 0.68 * part);
    const rise = Math.min(120, height * 0.14) * (1 - 0.35 * part);
    const points: number[] = [];
    for (let px = -40; px <= width + 80; px += 40) {
      points.push(
        px,
        base +
          rise *
            (Math.sin(px / (190 + 40 * noise(index, 5)) + index * 1.7) * 0.5 +
              noise(px / 480, index * 0.7) * 0.8),
      );
    }
    const color = along(scheme.colors, part);
    const fill = canvas.linear([
      { at: 0, color: light.seen(lift(color, 0.06)) },
      { at: 0.35, color: light.seen(color) },
      { at: 1, color: light.seen(lift(color, -0.12)) },
    ]);
    const line = smooth(points);
    return (
      path(`${line}L${num(width + 80)} ${num(height + 20)}L-40 ${num(height + 20)}Z`, fill) +
      stroke(line, light.ink(lift(color, 0.15)), 2, opacity(0.6))
    );
  });
  return ground(stage, scheme) + rings.join("") + layers.join("");
}
