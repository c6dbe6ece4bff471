import { castSubjects, drawCast } from "../cast/cast.ts";
import { type Lch, lch, lift, mix, toHex } from "../color/color.ts";
import { below, ridgeLine } from "../land/ridge.ts";
import type { Random } from "../random.ts";
import { blob, circle, ellipse, num, opacity, path, rect, stroke } from "../shapes.ts";
import { vignette } from "../sky/weather.ts";
import { countOf, type Stage, shortSide } from "../stage.ts";

/** Under water: light from above, rocks and weed, coral on the sand, bubbles. */
export function drawDepths(stage: Stage): void {
  const { canvas, light, width, height } = stage;
  const random = stage.random.fork("depths");
  const floor = height - Math.min(height * 0.2, 230);
  const fill = canvas.linear(
    light.sky.map((color, index) => ({ at: index / (light.sky.length - 1), color })),
  );
  canvas.layer("water", rect(0, 0, width, height, fill));
  canvas.layer("rays", rays(stage, random));
  canvas.layer("reef", reefs(stage, random, floor));
  canvas.layer("weed", plants(stage, random, floor, 0.5, countOf(stage, 9)));
  canvas.layer("seabed", seabed(stage, random, floor));
  const sides = { left: width * 0.05, right: width * 0.95 };
  const low = { ...sides, top: floor + 50, bottom: height - 40, kind: "ground" as const };
  const free = { ...sides, top: height * 0.1, bottom: floor, kind: "float" as const };
  const actors = castSubjects(stage, (drawing, { name }) =>
    name === "crab" || name === "starfish" || drawing.habitat === "land" ? low : free,
  );
  canvas.layer("coral", corals(stage, random, floor));
  drawCast(stage, actors);
  if (stage.reading.subjects.length === 0) canvas.layer("shoal", shoal(stage, random));
  canvas.layer("bubbles", bubbles(stage, random));
  canvas.layer("vignette", vignette(stage));
}

/** Rocks behind rocks, the far ones pale. */
function reefs(stage: Stage, random: Random, floor: number): string {
  const { height, light } = stage;
  const tall = Math.min(1.8, (height / shortSide) ** 0.6);
  return [0.62, 0.4]
    .map((depth, index) => {
      const form = {
        base: floor - 20 + index * 30,
        amplitude: (230 - index * 60) * tall,
        wavelength: 420,
        octaves: 3,
      };
      const color = toHex(mix(light.skyAt(0.9), light.skyAt(0.45), depth));
      return below(ridgeLine(stage, form, random.noise()), height + 4, color);
    })
    .join("");
}

function seabed(stage: Stage, random: Random, floor: number): string {
  const { canvas, light, height } = stage;
  const sand = lch(0.84, 0.07, 85);
  const form = { base: floor + 24, amplitude: 44, wavelength: 520, octaves: 1 };
  const fill = canvas.linear([
    { at: 0, color: mix(light.seen(sand), light.skyAt(0.4), 0.22) },
    { at: 1, color: mix(light.seen(sand), light.skyAt(0.9), 0.5) },
  ]);
  return (
    below(ridgeLine(stage, form, random.noise()), height + 4, fill) + pebbles(stage, random, floor, sand)
  );
}

function rays({ canvas, light, width, height }: Stage, random: Random): string {
  const pale = toHex(lift(light.skyAt(0), 0.1));
  const fill = canvas.linear([
    { at: 0, color: pale, opacity: 0.42 },
    { at: 1, color: pale, opacity: 0 },
  ]);
  return Array.from({ length: Math.round(4 + width / 260) }, () => {
    const [x, wide, lean] = [random.range(-0.1, 1.1) * width, random.range(30, 90), random.range(-120, 120)];
    const bottom = Math.min(height * 0.8, 1_500) * random.range(0.6, 1);
    return path(
      `M${num(x)} -10H${num(x + wide)}L${num(x + lean + wide * 2.6)} ${num(bottom)}H${num(x + lean - wide * 1.4)}Z`,
      fill,
    );
  }).join("");
}

function plants(stage: Stage, random: Random, floor: number, depth: number, count: number): string {
  return Array.from({ length: count }, (_, index) => {
    const x = ((index + random.next()) / count) * stage.width;
    const tall = random.range(110, 330);
    const color = toHex(
      mix(
        stage.light.seen(random.pick([lch(0.6, 0.14, 150), lch(0.62, 0.13, 128), lch(0.55, 0.12, 170)])),
        stage.light.skyAt(0.7),
        depth * 0.7,
      ),
    );
    return [-22, 0, 20]
      .map((dx, blade) => {
        const t = tall * (blade === 1 ? 1 : 0.7);
        const bend = random.range(18, 40) * (blade % 2 === 0 ? 1 : -1);
        return stroke(
          `M${num(x + dx)} ${num(floor + 60)}C${num(x + dx + bend)} ${num(floor - t * 0.3)} ${num(x + dx - bend)} ${num(floor - t * 0.6)} ${num(x + dx + bend * 0.6)} ${num(floor - t)}`,
          color,
          11,
          opacity(0.9),
        );
      })
      .join("");
  }).join("");
}

function corals(stage: Stage, random: Random, floor: number): string {
  const own = stage.reading.places.get("underwater") ?? [];
  const hues: readonly Lch[] =
    own.length > 0
      ? own
      : [
          lch(0.68, 0.19, 20),
          lch(0.76, 0.16, 55),
          lch(0.7, 0.17, 345),
          lch(0.62, 0.16, 300),
          lch(0.84, 0.14, 90),
        ];
  const count = Math.max(4, Math.round((stage.width / shortSide) * 7));
  return Array.from({ length: count }, (_, index) => {
    const x = ((index + random.range(0.15, 0.85)) / count) * stage.width;
    const y = floor + random.range(36, 90);
    const color = stage.light.ink(random.pick(hues));
    const kind = random.int(0, 2);
    if (kind === 0) return branching(random, x, y, color);
    if (kind === 1) {
      const r = random.range(26, 52);
      return (
        path(`M${num(x - r)} ${num(y)}A${num(r)} ${num(r * 0.95)} 0 0 1 ${num(x + r)} ${num(y)}Z`, color) +
        [0.3, 0.55, 0.8]
          .map(
            (part) =>
              `<path d="M${num(x - r * part)} ${num(y)}A${num(r * part)} ${num(r * part)} 0 0 1 ${num(x + r * part)} ${num(y)}" fill="none" stroke="#fff" stroke-width="3" stroke-opacity="0.25"/>`,
          )
          .join("")
      );
    }
    return [-18, -2, 15]
      .map((dx, tube) => {
        const tall = [62, 90, 50][tube] ?? 60;
        return (
          rect(x + dx - 9, y - tall, 18, tall + 6, color, 9) +
          ellipse(x + dx, y - tall + 7, 5.5, 4, "#000", opacity(0.28))
        );
      })
      .join("");
  }).join("");
}

function branching(random: Random, x: number, y: number, color: string): string {
  const limb = (fromX: number, fromY: number, angle: number, length: number): string => {
    if (length < 14) return "";
    const [ex, ey] = [fromX + Math.cos(angle) * length, fromY + Math.sin(angle) * length];
    return (
      stroke(`M${num(fromX)} ${num(fromY)}L${num(ex)} ${num(ey)}`, color, length * 0.24) +
      limb(ex, ey, angle - random.range(0.3, 0.6), length * 0.72) +
      limb(ex, ey, angle + random.range(0.3, 0.6), length * 0.72)
    );
  };
  return limb(x, y, -Math.PI / 2, random.range(36, 50));
}

function pebbles(stage: Stage, random: Random, floor: number, sand: Lch): string {
  return Array.from({ length: countOf(stage, 26) }, () => {
    const r = random.range(3, 11);
    return ellipse(
      random.range(0, stage.width),
      random.range(floor + 60, stage.height),
      r * 1.5,
      r * 0.6,
      stage.light.ink(lift(sand, random.range(-0.22, 0.06))),
      opacity(0.7),
    );
  }).join("");
}

function bubbles(stage: Stage, random: Random): string {
  return Array.from({ length: countOf(stage, 34) }, () => {
    const [x, y, r] = [
      random.range(0, stage.width),
      random.range(0, stage.height * 0.9),
      2.5 + 11 * random.next() ** 2,
    ];
    return `<circle cx="${num(x)}" cy="${num(y)}" r="${num(r)}" fill="#fff" fill-opacity="0.12" stroke="#fff" stroke-opacity="0.6" stroke-width="1.4"/>${circle(x - r * 0.35, y - r * 0.35, r * 0.22, "#fff", opacity(0.8))}`;
  }).join("");
}

/** Small far fish, where the prompt names none. */
function shoal(stage: Stage, random: Random): string {
  const color = toHex(lift(stage.light.skyAt(0.3), 0.12));
  const [cx, cy] = [stage.width * random.range(0.35, 0.65), stage.height * random.range(0.3, 0.5)];
  return Array.from({ length: countOf(stage, 34) }, () => {
    const [x, y, s] = [cx + random.range(-240, 240), cy + random.range(-120, 120), random.range(7, 13)];
    return (
      blob([x - s, y, x, y - s * 0.5, x + s * 1.1, y, x, y + s * 0.5], color) +
      path(`M${num(x - s * 0.8)} ${num(y)}l${num(-s * 0.8)} ${num(-s * 0.5)}v${num(s)}Z`, color)
    );
  }).join("");
}
