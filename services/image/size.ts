/**
 * The size rules of the public interface, as pure functions.
 *
 * - A request is checked against itself first (readSize): what contradicts itself is refused whatever the model.
 * - A pixel size is authoritative: an endpoint makes exactly it or refuses (resolveSize).
 * - An aspect ratio and a tier are wishes: an endpoint takes the nearest of each that it offers, on a log scale, the
 *   first of its list where two are equally near. The pixels of a tier are the endpoint's own: on a grid the usual ones
 *   of the ratio where there are such (usual-sizes.ts), else even ones derived from the tier's area.
 * - Where neither is asked for the endpoint decides, if it can, else its default holds. `auto` beside a tier is 1:1 or
 *   what is nearest to it.
 */
import type { Issue } from "../../lib/runtime/domain-error.ts";
import {
  type AspectRatio,
  aspectRatios,
  type ImageCapabilities,
  type ImageShape,
  type ListedSizes,
  type PixelSize,
  type Resolution,
  resolutions,
  type SizeGrid,
} from "../../providers/catalog/image.ts";
import { usualSize } from "./usual-sizes.ts";

/** The three fields as they came; empty aspect ratio and size, and an undefined resolution, count as not given. */
export interface SizeFields {
  readonly aspectRatio: string;
  readonly resolution: Resolution | undefined;
  readonly size: string;
}

/** What a request asks of the size, free of contradictions. With pixels the other two say nothing more. */
export interface SizeRequest {
  /** Undefined: auto. */
  readonly aspectRatio: AspectRatio | undefined;
  readonly resolution: Resolution | undefined;
  readonly pixels: PixelSize | undefined;
}

/** What reading the fields gave: the request, or the faults and whether they are contradictions alone. */
type ReadSize =
  | { readonly request: SizeRequest; readonly issues?: undefined }
  | { readonly request?: undefined; readonly issues: readonly Issue[]; readonly conflict: boolean };

const largestTolerancePercent = 1;

/** Reads the size fields of a request by the rules of the public interface, whatever the model. */
export function readSize({ aspectRatio: ratio, resolution, size }: SizeFields): ReadSize {
  const isAuto = ratio === "" || ratio === "auto";
  const aspectRatio = aspectRatios.find((known) => known === ratio);
  const faults: Issue[] = [];
  if (!isAuto && aspectRatio === undefined) {
    faults.push({ path: "aspect_ratio", message: "is not one of the aspect ratios" });
  }
  const tier = resolutions.find((known) => known === size);
  const pixels = tier === undefined ? parsePixels(size) : undefined;
  if (size !== "" && tier === undefined && pixels === undefined) {
    faults.push({ path: "size", message: "must be a tier such as 2K, or <width>x<height>" });
  }
  if (faults.length > 0) return { issues: faults, conflict: false };
  const issues = contradictions(aspectRatio, resolution, tier, pixels);
  if (issues.length > 0) return { issues, conflict: true };
  return { request: { aspectRatio, resolution: resolution ?? tier, pixels } };
}

function parsePixels(text: string): PixelSize | undefined {
  const [, width, height] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(text) ?? [];
  if (width === undefined || height === undefined) return undefined;
  return { width: Number(width), height: Number(height) };
}

function contradictions(
  aspectRatio: AspectRatio | undefined,
  resolution: Resolution | undefined,
  tier: Resolution | undefined,
  pixels: PixelSize | undefined,
): readonly Issue[] {
  const issues: Issue[] = [];
  if (tier !== undefined && resolution !== undefined && tier !== resolution) {
    issues.push({ path: "resolution", message: "is another tier than size names" });
  }
  if (pixels === undefined) return issues;
  if (resolution !== undefined && tierOf(pixels) !== resolution) {
    issues.push({
      path: "resolution",
      message: `does not match size, which is of the tier ${tierOf(pixels)}`,
    });
  }
  if (aspectRatio !== undefined && !matchesRatio(pixels, aspectRatio)) {
    issues.push({ path: "aspect_ratio", message: "does not match size" });
  }
  return issues;
}

const sides: Readonly<Record<Resolution, number>> = { "512": 512, "1K": 1024, "2K": 2048, "4K": 4096 };

/** The tier whose side is nearest to the root of the area on a log scale; the smaller one where two are as near. */
export function tierOf({ width, height }: PixelSize): Resolution {
  // Between a side s and 2s the middle of a log scale is √2·s: an area of 2s².
  return resolutions.find((tier) => width * height <= 2 * sides[tier] ** 2) ?? "4K";
}

/** Whether width to height is within 1 % of the ratio. */
export function matchesRatio({ width, height }: PixelSize, aspectRatio: AspectRatio): boolean {
  // In whole numbers, so that the bound itself is exact.
  const { across, down } = partsOf(aspectRatio);
  return Math.abs(width * down - height * across) * 100 <= largestTolerancePercent * height * across;
}

/** Tenths, as some ratios have halves. */
function partsOf(aspectRatio: AspectRatio): { across: number; down: number } {
  const [across = 1, down = 1] = aspectRatio.split(":").map((part) => Math.round(Number(part) * 10));
  return { across, down };
}

function ratioOf(aspectRatio: AspectRatio): number {
  const { across, down } = partsOf(aspectRatio);
  return across / down;
}

/** The aspect ratio of a list that is nearest to a wanted one on a log scale. */
export function nearestRatio(offered: readonly AspectRatio[], wanted: AspectRatio): AspectRatio {
  return nearest(offered, (ratio) => distance(ratioOf(ratio), ratioOf(wanted))) ?? wanted;
}

/** The tier of a list that is nearest to a wanted one on a log scale. */
export function nearestTier(offered: readonly Resolution[], wanted: Resolution): Resolution {
  return nearest(offered, (tier) => distance(sides[tier], sides[wanted])) ?? wanted;
}

function distance(one: number, other: number): number {
  return Math.abs(Math.log(one / other));
}

/** Distances nearer to each other than this are equal: logarithms of equal ratios may differ in the last digits. */
const epsilon = 1e-9;

/** The first of the nearest ones; undefined for an empty list. */
function nearest<T>(offered: readonly T[], distanceOf: (one: T) => number): T | undefined {
  let best: { one: T; far: number } | undefined;
  for (const one of offered) {
    const far = distanceOf(one);
    if (best === undefined || far < best.far - epsilon) best = { one, far };
  }
  return best?.one;
}

/** Whether an endpoint can make what a request asks; only a pixel size can be refused. */
export function offersSize({ sizes }: ImageCapabilities, { pixels }: SizeRequest): boolean {
  if (pixels === undefined) return true;
  if (sizes.kind === "grid") return isWithin(pixels, sizes);
  return sizes.sizes.some(({ width, height }) => width === pixels.width && height === pixels.height);
}

/** The pixels that an endpoint makes of a request that it can serve; undefined: the endpoint decides. */
export function resolveSize(capabilities: ImageCapabilities, request: SizeRequest): PixelSize | undefined {
  const { sizes, autoSize } = capabilities;
  const { aspectRatio, resolution, pixels } = request;
  if (pixels !== undefined) return pixels;
  if (aspectRatio === undefined && resolution === undefined && autoSize) return undefined;
  return sizes.kind === "grid" ? fromGrid(sizes, request) : fromList(sizes, request);
}

/** What a request asks of an endpoint in the words of the interface; undefined where the endpoint decides. */
export function resolveShape(capabilities: ImageCapabilities, request: SizeRequest): ImageShape | undefined {
  const size = resolveSize(capabilities, request);
  if (size === undefined) return undefined;
  const { sizes } = capabilities;
  const ratios = sizes.kind === "grid" ? sizes.aspectRatios : aspectRatios;
  const tiers = sizes.kind === "grid" ? sizes.resolutions : resolutions;
  const ratio = size.width / size.height;
  const [nearestTo = "1:1"] = ratios;
  return {
    aspectRatio: nearest(ratios, (offered) => distance(ratioOf(offered), ratio)) ?? nearestTo,
    resolution: nearestTier(tiers, tierOf(size)),
  };
}

function fromList({ sizes }: ListedSizes, { aspectRatio, resolution }: SizeRequest): PixelSize | undefined {
  const [first] = sizes;
  if (first === undefined || (aspectRatio === undefined && resolution === undefined)) return first;
  const ratio = aspectRatio === undefined ? 1 : ratioOf(aspectRatio);
  const farness = (size: PixelSize) => distance(size.width / size.height, ratio);
  const best = nearest(sizes, farness);
  const alike = sizes.filter((size) => best !== undefined && farness(size) <= farness(best) + epsilon);
  const side = sides[resolution ?? tierOf(first)];
  return nearest(alike, (size) => distance(Math.sqrt(size.width * size.height), side));
}

function fromGrid(grid: SizeGrid, { aspectRatio = "1:1", resolution }: SizeRequest): PixelSize {
  const ratio = nearestRatio(grid.aspectRatios, aspectRatio);
  const tier = nearestTier(grid.resolutions, resolution ?? grid.defaultResolution);
  return derivePixels(grid, ratio, tier);
}

/** How far the shorter side may be from the ideal one for the sake of a truer ratio. */
const sideTolerance = 0.05;

/** The pixels of a ratio and a tier on an endpoint's grid: the usual ones where its bounds hold them, else derived ones. */
export function derivePixels(grid: SizeGrid, aspectRatio: AspectRatio, tier: Resolution): PixelSize {
  const usual = usualSize(aspectRatio, tier);
  return usual !== undefined && isWithin(usual, grid) ? usual : fromArea(grid, aspectRatio, tier);
}

/**
 * Both sides even and on the grid, the area near the tier's square and within the endpoint's bounds, the ratio as true
 * as it gets there, the area as near as it gets then.
 */
function fromArea(grid: SizeGrid, aspectRatio: AspectRatio, tier: Resolution): PixelSize {
  const ratio = ratioOf(aspectRatio);
  const longToShort = Math.max(ratio, 1 / ratio);
  // Video and colour at half the resolution want even sides.
  const step = grid.multipleOf % 2 === 0 ? grid.multipleOf : 2 * grid.multipleOf;
  const area = Math.min(Math.max(sides[tier] ** 2, grid.minPixels), grid.maxPixels);
  const ideal = Math.min(Math.sqrt(area / longToShort), grid.maxSide / longToShort);
  const candidates = shortSides(ideal, step).flatMap((short) =>
    aroundOf(short * longToShort, step).map((long) => turned(long, short, ratio)),
  );
  const within = candidates.filter((size) => isWithin(size, grid));
  const truest = nearestBand(within.length > 0 ? within : candidates, ({ width, height }) =>
    distance(width / height, ratio),
  );
  const best = nearest(truest, ({ width, height }) => distance(Math.min(width, height), ideal));
  return best ?? turned(ideal * longToShort, ideal, ratio);
}

function turned(long: number, short: number, ratio: number): PixelSize {
  return ratio >= 1 ? { width: long, height: short } : { width: short, height: long };
}

/** Multiples near the ideal side; at least the two around it. */
function shortSides(ideal: number, multipleOf: number): readonly number[] {
  const least = Math.min(
    Math.ceil((ideal * (1 - sideTolerance)) / multipleOf),
    Math.floor(ideal / multipleOf),
  );
  const most = Math.max(
    Math.floor((ideal * (1 + sideTolerance)) / multipleOf),
    Math.ceil(ideal / multipleOf),
  );
  return Array.from({ length: most - least + 1 }, (_, step) => (least + step) * multipleOf).filter(
    (side) => side > 0,
  );
}

function aroundOf(length: number, multipleOf: number): readonly number[] {
  const below = Math.floor(length / multipleOf) * multipleOf;
  return [below, below + multipleOf].filter((side) => side > 0);
}

/** All that are as near as the nearest. */
function nearestBand<T>(offered: readonly T[], distanceOf: (one: T) => number): readonly T[] {
  const least = Math.min(...offered.map(distanceOf));
  return offered.filter((one) => distanceOf(one) <= least + epsilon);
}

function isWithin({ width, height }: PixelSize, grid: SizeGrid): boolean {
  const long = Math.max(width, height);
  const short = Math.min(width, height);
  return (
    width % grid.multipleOf === 0 &&
    height % grid.multipleOf === 0 &&
    long <= grid.maxSide &&
    width * height >= grid.minPixels &&
    width * height <= grid.maxPixels &&
    (grid.maxRatio === undefined || long <= short * grid.maxRatio)
  );
}

/** The aspect ratios that an endpoint offers, in the interface's words and order; of a list, those that sizes have. */
export function offeredRatios({ sizes }: ImageCapabilities): readonly AspectRatio[] {
  if (sizes.kind === "grid") return sizes.aspectRatios;
  return aspectRatios.filter((ratio) => sizes.sizes.some((size) => matchesRatio(size, ratio)));
}

/** The tiers that an endpoint offers, from small to large. */
export function offeredTiers({ sizes }: ImageCapabilities): readonly Resolution[] {
  if (sizes.kind === "grid") return resolutions.filter((tier) => sizes.resolutions.includes(tier));
  return resolutions.filter((tier) => sizes.sizes.some((size) => tierOf(size) === tier));
}
