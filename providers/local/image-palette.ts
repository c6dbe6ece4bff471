import type { PaletteColor } from "@media-gateway/painter";
import { converter } from "culori";
import sharp from "sharp";

const side = 64;
const colorCount = 5;
const rounds = 12;
const maxPixels = 50_000_000;
const formats: ReadonlySet<string> = new Set(["png", "jpeg", "webp"]);

const toLab = converter("oklab");

type Point = readonly [l: number, a: number, b: number];

/** The five colours that images have most of, by k-means in OKLab. Throws what sharp throws for what is no image. */
export async function paletteOf(images: readonly Uint8Array[]): Promise<PaletteColor[]> {
  const points: Point[] = [];
  for (const image of images) points.push(...(await pointsOf(image)));
  return points.length === 0 ? [] : cluster(points);
}

/** The opaque pixels of a small copy of an image. */
async function pointsOf(bytes: Uint8Array): Promise<Point[]> {
  const image = sharp(bytes, { limitInputPixels: maxPixels, failOn: "error" });
  const { format } = await image.metadata();
  if (!formats.has(format)) throw new Error("not one of the formats of references");
  const { data } = await image
    .resize(side, side, { fit: "fill" })
    .toColourspace("srgb")
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const points: Point[] = [];
  for (let at = 0; at + 3 < data.length; at += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(at, at + 4);
    if (alpha < 128) continue;
    const { l, a, b } = toLab({ mode: "rgb", r: red / 255, g: green / 255, b: blue / 255 });
    points.push([l, a, b]);
  }
  return points;
}

function cluster(points: readonly Point[]): PaletteColor[] {
  let centres = spreadOut(points);
  let counts = centres.map(() => 0);
  for (let round = 0; round < rounds; round++) {
    const sums = centres.map((): [number, number, number] => [0, 0, 0]);
    counts = centres.map(() => 0);
    for (const point of points) {
      const index = nearest(point, centres);
      const sum = sums[index];
      if (sum === undefined) continue;
      for (const axis of [0, 1, 2] as const) sum[axis] += point[axis];
      counts[index] = (counts[index] ?? 0) + 1;
    }
    centres = sums.map((sum, index): Point => {
      const count = counts[index] ?? 0;
      return count === 0 ? (centres[index] ?? sum) : [sum[0] / count, sum[1] / count, sum[2] / count];
    });
  }
  return centres
    .map(([l, a, b], index) => ({ l, a, b, share: (counts[index] ?? 0) / points.length }))
    .filter(({ share }) => share > 0);
}

/** Starting centres: the first pixel, then always the one farthest from those before. */
function spreadOut(points: readonly Point[]): Point[] {
  const centres = points.slice(0, 1);
  const distances = points.map((point) => distance(point, centres[0] ?? point));
  while (centres.length < Math.min(colorCount, points.length)) {
    const farthest = distances.reduce(
      (best, value, index) => (value > (distances[best] ?? 0) ? index : best),
      0,
    );
    const centre = points[farthest];
    if (centre === undefined) break;
    centres.push(centre);
    for (const [index, point] of points.entries()) {
      distances[index] = Math.min(distances[index] ?? 0, distance(point, centre));
    }
  }
  return centres;
}

function nearest(point: Point, centres: readonly Point[]): number {
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [index, centre] of centres.entries()) {
    const apart = distance(point, centre);
    if (apart < least) [best, least] = [index, apart];
  }
  return best;
}

function distance(first: Point, second: Point): number {
  return (first[0] - second[0]) ** 2 + (first[1] - second[1]) ** 2 + (first[2] - second[2]) ** 2;
}
