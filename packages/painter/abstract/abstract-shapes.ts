import { type Lch, lch, lift, mix, toHex } from "../color/color.ts";
import type { Random } from "../random.ts";
import { circle, group, num, path, polygon, rect } from "../shapes.ts";
import { type Stage, shortSide } from "../stage.ts";
import { along } from "./abstract-lines.ts";
import type { Scheme } from "./abstract-scheme.ts";

type Point = readonly [number, number];

/** Facets as of cut stone: a grid of triangles, lit from one corner. */
export function drawFacets(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light } = stage;
  const size = 105 / Math.min(1.35, 0.6 + stage.detail * 0.4);
  const noise = random.noise();
  const [columns, rows] = [Math.ceil(width / size) + 2, Math.ceil(height / size) + 2];
  const points: Point[][] = Array.from({ length: rows + 1 }, (_, row) =>
    Array.from(
      { length: columns + 1 },
      (_, column): Point => [
        (column - 1 + (row % 2) * 0.5 + random.range(-0.34, 0.34)) * size,
        (row - 1 + random.range(-0.34, 0.34)) * size,
      ],
    ),
  );
  const facets: string[] = [];
  const facet = (...corners: readonly (Point | undefined)[]) => {
    const known = corners.filter((corner) => corner !== undefined);
    const [x, y] = [0, 1].map((axis) => known.reduce((sum, corner) => sum + (corner[axis] ?? 0), 0) / 3);
    const part = 0.5 + 0.42 * noise((x ?? 0) / 760, (y ?? 0) / 760) + 0.22 * ((y ?? 0) / height - 0.5);
    const ink = light.ink(lift(along(scheme.colors, part), random.range(-0.07, 0.07)));
    facets.push(
      polygon(
        known.map(([px, py]) => `${num(px)},${num(py)}`).join(" "),
        ink,
        `stroke="${ink}" stroke-width="1"`,
      ),
    );
  };
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const [a, b] = [points[row]?.[column], points[row]?.[column + 1]];
      const [c, d] = [points[row + 1]?.[column], points[row + 1]?.[column + 1]];
      if (row % 2 === 0) {
        facet(a, b, c);
        facet(b, d, c);
      } else {
        facet(a, b, d);
        facet(a, d, c);
      }
    }
  }
  return facets.join("");
}

/** Stained glass: the picture cut again and again by straight lines. */
export function drawMosaic(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light, canvas } = stage;
  const pane = (140_00 / (0.5 + stage.detail * 0.5)) * (0.9 + 0.1 * (width / height));
  const lead = toHex(lift(light.seen(scheme.ground), scheme.ground.l > 0.5 ? -0.02 : 0.02));
  const noise = random.noise();
  const pieces: Point[][] = [];
  const cut = (piece: Point[], depth: number): void => {
    if (depth > 12 || areaOf(piece) < Math.max(4_000, Math.min(pane, 40_000)) * random.range(0.5, 2.1)) {
      pieces.push(piece);
      return;
    }
    const [first, second] = split(piece, random);
    cut(first, depth + 1);
    cut(second, depth + 1);
  };
  cut(
    [
      [-10, -10],
      [width + 10, -10],
      [width + 10, height + 10],
      [-10, height + 10],
    ],
    0,
  );
  const panes = pieces.map((piece) => {
    const [x, y] = middleOf(piece);
    const part = 0.5 + 0.66 * noise(x / 620, y / 620) + random.range(-0.16, 0.16);
    const color = lift(nearestOf(scheme.colors, part), random.range(-0.05, 0.05));
    const fill = canvas.linear(
      [
        { at: 0, color: light.seen(lift(color, 0.07)) },
        { at: 1, color: light.seen(lift(color, -0.05)) },
      ],
      [0, 0, 1, 1],
    );
    return polygon(
      piece.map(([px, py]) => `${num(px)},${num(py)}`).join(" "),
      fill,
      `stroke="${lead}" stroke-width="7" stroke-linejoin="round"`,
    );
  });
  return rect(0, 0, width, height, lead) + panes.join("");
}

function nearestOf(colors: readonly Lch[], part: number): Lch {
  const index = Math.min(colors.length - 1, Math.max(0, Math.floor(part * colors.length)));
  return colors[index] ?? lch(0.5, 0.1, 0);
}

function areaOf(piece: readonly Point[]): number {
  return (
    Math.abs(
      piece.reduce((sum, [x, y], index) => {
        const [nx, ny] = piece[(index + 1) % piece.length] ?? [x, y];
        return sum + x * ny - nx * y;
      }, 0),
    ) / 2
  );
}

function middleOf(piece: readonly Point[]): Point {
  const sum = piece.reduce<Point>(([sx, sy], [x, y]) => [sx + x, sy + y], [0, 0]);
  return [sum[0] / piece.length, sum[1] / piece.length];
}

/** Cuts from the longest side to about the middle of the border across from it. */
function split(piece: readonly Point[], random: Random): [Point[], Point[]] {
  const count = piece.length;
  const side = (index: number) => {
    const [from, to] = [piece[index % count] ?? [0, 0], piece[(index + 1) % count] ?? [0, 0]];
    return { from, to, length: Math.hypot(to[0] - from[0], to[1] - from[1]) };
  };
  const start = piece.reduce(
    (longest, _, index) => (side(index).length > side(longest).length ? index : longest),
    0,
  );
  const others = piece.map((_, index) => index).filter((index) => index !== start);
  const end = others.reduce(
    (longest, index) => (side(index).length > side(longest).length ? index : longest),
    others[0] ?? 0,
  );
  const pointOn = (index: number): Point => {
    const { from, to } = side(index);
    const part = random.range(0.34, 0.66);
    return [from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part];
  };
  const [p, q] = [pointOn(start), pointOn(end)];
  const walk = (from: number, to: number) => {
    const corners: Point[] = [];
    for (let index = from + 1; index % count !== (to + 1) % count; index++)
      corners.push(piece[index % count] ?? [0, 0]);
    return corners;
  };
  return [
    [p, ...walk(start, end), q],
    [q, ...walk(end, start), p],
  ];
}

/** A grid of quarter discs, half discs, triangles, dots and bars. */
export function drawBauhaus(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light } = stage;
  const across = Math.max(2, Math.round((width / shortSide) * (stage.detail > 1.2 ? 6 : 5)));
  const size = width / across;
  const down = Math.ceil(height / size);
  const colors = [...scheme.colors, scheme.ground];
  const cells: string[] = [rect(0, 0, width, height, light.ink(scheme.ground))];
  for (let row = 0; row < down; row++) {
    for (let column = 0; column < across; column++) {
      const base = random.pick(colors);
      const first = random.pick(colors.filter((color) => color !== base));
      const second = random.pick(colors.filter((color) => color !== base && color !== first));
      const tile = tileOf(random.int(0, 8), light.ink(base), light.ink(first), light.ink(second));
      const turn = random.int(0, 3) * 90;
      cells.push(
        group(
          `transform="translate(${num((column + 0.5) * size)} ${num((row + 0.5) * size)}) rotate(${turn}) scale(${Math.round((size / 100) * 1_000) / 1_000})"`,
          tile,
        ),
      );
    }
  }
  return cells.join("");
}

/** One tile, 100 by 100 around 0,0. */
function tileOf(kind: number, base: string, first: string, second: string): string {
  const ground = rect(-50.2, -50.2, 100.4, 100.4, base);
  switch (kind) {
    case 0:
      return (
        ground +
        path("M-50 -50H50A100 100 0 0 1 -50 50Z", first) +
        path("M-50 -50H0A50 50 0 0 1 -50 0Z", second)
      );
    case 1:
      return ground + path("M-50 -50A50 50 0 0 1 -50 50Z", first) + path("M0 -50A50 50 0 0 1 0 50Z", second);
    case 2:
      return ground + polygon("-50,-50 50,-50 -50,50", first);
    case 3:
      return ground + circle(0, 0, 40, first) + circle(0, 0, 18, second);
    case 4:
      return ground + [-40, -15, 10, 35].map((y) => rect(-50, y, 100, 12, first)).join("");
    case 5:
      return ground + path("M-50 50A50 50 0 0 1 50 50Z", first) + path("M-50 0A50 50 0 0 1 50 0Z", second);
    case 6:
      return ground + polygon("-50,50 0,-50 50,50", first) + circle(0, 22, 15, second);
    case 7:
      return ground + [-30, 0, 30].flatMap((x) => [-30, 0, 30].map((y) => circle(x, y, 8, first))).join("");
    default:
      return ground + path("M-50 -50A100 100 0 0 1 50 50H-50Z", first);
  }
}

/** Discs within discs, each off the middle of the one before, around a large one. */
export function drawOrbits(stage: Stage, random: Random, scheme: Scheme): string {
  const { width, height, light, canvas } = stage;
  const back = canvas.linear([
    { at: 0, color: light.seen(lift(scheme.ground, 0.03)) },
    { at: 1, color: light.seen(mix(scheme.ground, along(scheme.colors, 0.2), 0.22)) },
  ]);
  const long = Math.max(width, height) / shortSide;
  const small = Array.from({ length: Math.round(long * 9 * Math.min(1.3, stage.detail)) + 2 }, () => {
    const [x, y] = [random.range(0.02, 0.98) * width, random.range(0.02, 0.98) * height];
    return nested(stage, random, scheme, [x, y], shortSide * random.range(0.05, 0.17), random.int(3, 5));
  });
  const count = Math.max(1, Math.round(long * 0.7));
  const mains = Array.from({ length: count }, (_, index) => {
    const part = (index + random.range(0.4, 0.6)) / count;
    const [x, y] =
      width >= height
        ? [part * width, height * random.range(0.44, 0.56)]
        : [width * random.range(0.44, 0.56), part * height];
    return nested(stage, random, scheme, [x, y], shortSide * random.range(0.34, 0.4), 9);
  });
  return rect(0, 0, width, height, back) + small.join("") + mains.join("");
}

function nested(
  stage: Stage,
  random: Random,
  { colors }: Scheme,
  [x, y]: Point,
  reach: number,
  count: number,
): string {
  const angle = random.range(0, Math.PI * 2);
  const start = random.int(0, colors.length - 1);
  let [cx, cy, radius] = [x, y, reach];
  const discs: string[] = [];
  for (let index = 0; index < count; index++) {
    const color = lift(
      colors[(start + index) % colors.length] ?? lch(0.6, 0.1, 0),
      random.range(-0.04, 0.04),
    );
    discs.push(circle(cx, cy, radius, stage.light.ink(color)));
    const next = radius * random.range(0.72, 0.88);
    const shift = (radius - next) * random.range(0.1, 0.85);
    cx += Math.cos(angle + index * 0.35) * shift;
    cy += Math.sin(angle + index * 0.35) * shift;
    radius = next;
  }
  return discs.join("");
}
