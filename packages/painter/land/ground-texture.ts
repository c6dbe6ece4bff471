import { type Lch, lch, lift, mix } from "../color/color.ts";
import type { Random } from "../random.ts";
import { circle, ellipse, num, opacity, path, stroke } from "../shapes.ts";
import { countOf, type Stage } from "../stage.ts";
import { groundColor, leafColors } from "./ground-color.ts";

/** A place on the ground, and how large things are there. */
interface Spot {
  readonly x: number;
  readonly y: number;
  readonly size: number;
}

/** Tufts and flowers, pebbles, tracks of the wind: enough that no ground is a bare slab. */
export function drawGroundTexture(stage: Stage, random: Random, top: number): string {
  const { setting, width, height } = stage;
  const space = height - top;
  const spots = (usual: number) =>
    Array.from({ length: countOf(stage, usual, Math.min(1, space / 380)) }, (): Spot => {
      const part = random.next() ** 0.75;
      return { x: random.range(0, width), y: top + 22 + part * (space - 16), size: 0.35 + 0.9 * part };
    });
  switch (setting.ground) {
    case "sand":
    case "snow":
      return drifts(stage, random, spots(34), spots(16));
    case "rock":
      return stones(stage, random, spots(46));
    case "paved":
      return "";
    default:
      return meadow(stage, random, spots);
  }
}

/** What the wind leaves on sand and snow, and pebbles. */
function drifts(stage: Stage, random: Random, lines: readonly Spot[], pebbles: readonly Spot[]): string {
  const color = groundColor(stage);
  const marks = lines.map(({ x, y, size }, index) => {
    const length = random.range(50, 130) * size;
    const curve = `M${num(x)} ${num(y)}q${num(length / 2)} ${num(-9 * size)} ${num(length)} 0`;
    return stroke(
      curve,
      stage.light.ink(lift(color, index % 3 === 0 ? 0.03 : -0.09)),
      2.4 * size,
      opacity(0.55),
    );
  });
  const dots = pebbles.map(({ x, y, size }) =>
    ellipse(x, y, 7 * size, 3.4 * size, stage.light.ink(lift(color, -0.16)), opacity(0.6)),
  );
  return marks.join("") + dots.join("");
}

const usualPetals: readonly Lch[] = [
  lch(0.97, 0.02, 95),
  lch(0.9, 0.15, 95),
  lch(0.75, 0.16, 0),
  lch(0.7, 0.14, 300),
  lch(0.68, 0.2, 28),
];

/** How many flowers a square picture has beside its tufts. */
function blossomsOf({ reading, setting }: Stage): number {
  if (reading.places.has("field")) return 0;
  if (reading.places.has("garden")) return 150;
  return { spring: 80, summer: 42, autumn: 0, winter: 0 }[setting.season];
}

function meadow(stage: Stage, random: Random, spots: (usual: number) => Spot[]): string {
  const { light, setting, reading } = stage;
  const color = groundColor(stage);
  const tufts = 110;
  const blossoms = blossomsOf(stage);
  const own = reading.places.get("garden") ?? [];
  const petals = own.length > 0 ? own : [1, 2, 3].map(() => random.pick(usualPetals));
  const places = [...spots(tufts), ...(blossoms === 0 ? [] : spots(blossoms))].sort((a, b) => a.y - b.y);
  const marks = places.map((spot) => {
    if (random.chance(blossoms / (blossoms + tufts)))
      return smallFlower(stage, random, spot, random.pick(petals));
    if (setting.season !== "autumn" || random.chance(0.5)) return tuft(stage, random, spot, color);
    const leaf = light.ink(random.pick(leafColors(stage)));
    return ellipse(spot.x, spot.y, 7 * spot.size, 3.6 * spot.size, leaf, opacity(0.9));
  });
  return marks.join("");
}

function stones(stage: Stage, random: Random, spots: readonly Spot[]): string {
  const color = groundColor(stage);
  return spots
    .map(({ x, y, size }) => {
      const r = random.range(5, 20) * size;
      return (
        ellipse(
          x + r * 0.3,
          y + r * 0.35,
          r * 1.2,
          r * 0.4,
          stage.light.ink(lift(color, -0.2)),
          opacity(0.5),
        ) +
        path(
          `M${num(x - r)} ${num(y + r * 0.35)}L${num(x - r * 0.6)} ${num(y - r * 0.4)}L${num(x + r * 0.2)} ${num(y - r * 0.6)}L${num(x + r)} ${num(y + r * 0.35)}Z`,
          stage.light.ink(lift(color, -0.07)),
        )
      );
    })
    .join("");
}

function tuft(stage: Stage, random: Random, { x, y, size }: Spot, color: Lch): string {
  const ink = stage.light.ink(mix(lift(color, random.chance(0.4) ? 0.06 : -0.11), lch(0.6, 0.14, 130), 0.15));
  const s = 13 * size;
  const lean = random.range(-0.4, 0.4) * s;
  const d = `M${num(x - s * 0.35)} ${num(y)}q${num(-s * 0.15)} ${num(-s * 0.5)} ${num(-s * 0.35 + lean)} ${num(-s * 0.9)}M${num(x)} ${num(y)}q0 ${num(-s * 0.6)} ${num(lean)} ${num(-s * 1.25)}M${num(x + s * 0.35)} ${num(y)}q${num(s * 0.15)} ${num(-s * 0.5)} ${num(s * 0.4 + lean)} ${num(-s * 0.8)}`;
  return stroke(d, ink, 2.6 * size);
}

function smallFlower(stage: Stage, random: Random, { x, y, size }: Spot, color: Lch): string {
  const r = 5.4 * size;
  const top = y - random.range(9, 17) * size;
  const stem = stroke(`M${num(x)} ${num(y)}V${num(top)}`, stage.light.ink(lch(0.55, 0.12, 140)), 1.8 * size);
  const petal = stage.light.ink(color);
  const petals = [0, 72, 144, 216, 288].map((angle) => {
    const a = (angle * Math.PI) / 180;
    return circle(x + Math.cos(a) * r * 0.75, top + Math.sin(a) * r * 0.75, r * 0.62, petal);
  });
  return stem + petals.join("") + circle(x, top, r * 0.48, stage.light.ink(lch(0.88, 0.15, 88)));
}
