import { lch } from "../color/color.ts";
import type { SubjectName } from "../prompt/subject-words.ts";
import type { Random } from "../random.ts";
import { ellipse, opacity, placed } from "../shapes.ts";
import { type Stage, shortSide } from "../stage.ts";
import { drawings } from "../subjects/drawings.ts";
import type { Actor } from "./actor.ts";
import { brushFor } from "./brush-for.ts";

interface Extra {
  readonly name: SubjectName;
  readonly x: number;
  readonly y: number;
  /** Height in units. */
  readonly height: number;
  readonly depth: number;
}

/** Trees, bushes and the like that belong to a place, kept clear of the subjects. */
export function drawDressing(
  stage: Stage,
  landTop: number,
  actors: readonly Actor[],
): { behind: string; front: string } {
  const random = stage.random.fork("dressing");
  const behind = extrasOf(stage, random, landTop)
    .filter(({ x }) =>
      actors.every((actor) => Math.abs(actor.x - x) > actor.drawing.width * actor.scale * 0.55 + 40),
    )
    .sort((a, b) => a.y - b.y);
  const front = framing(stage, random, actors);
  const draw = (extra: Extra, index: number) => drawExtra(stage, random.fork(String(index)), extra);
  return {
    behind: behind.map(draw).join(""),
    front: front.map((extra, index) => draw(extra, index + 1_000)).join(""),
  };
}

function drawExtra(stage: Stage, random: Random, { name, x, y, height, depth }: Extra): string {
  const drawing = drawings[name];
  const scale = height / drawing.height;
  const half = drawing.width * scale * 0.4;
  const shadow = ellipse(
    x,
    y + 1,
    half,
    Math.max(2, half * 0.13),
    stage.light.ink(lch(0.25, 0.05, 270)),
    opacity(0.22),
  );
  return (
    shadow +
    placed(drawing.draw(brushFor(stage, drawing, random, { depth })), {
      x,
      y,
      scale,
      flip: random.chance(0.5),
    })
  );
}

/** What grows or stands in the middle distance. */
function extrasOf(stage: Stage, random: Random, landTop: number): Extra[] {
  const kinds = kindsOf(stage);
  if (kinds.length === 0) return [];
  const space = stage.height - landTop;
  const busy =
    stage.reading.places.has("garden") ||
    stage.reading.places.has("forest") ||
    stage.setting.backdrops.includes("forest");
  const wet = stage.setting.water === "lake" || stage.setting.water === "sea";
  const count =
    Math.round((stage.width / shortSide) * (busy ? 6 : wet ? 2 : 3.6) * Math.min(1.4, stage.detail + 0.2)) +
    1;
  return Array.from({ length: count }, (_, index) => {
    const name = random.pick(kinds);
    const part = 0.03 + 0.5 * random.next() ** 1.4;
    const x = ((index + random.range(0.1, 0.9)) / count) * stage.width;
    const size = drawings[name].size * shortSide * (wet ? 0.5 : 0.24 + 0.55 * part) * random.range(0.8, 1.15);
    return { name, x, y: landTop + 16 + part * space * 0.8, height: size, depth: 0.22 * (1 - part) };
  });
}

function kindsOf({ setting, reading }: Stage): readonly SubjectName[] {
  const { places } = reading;
  if (setting.ground === "snow") return places.has("arctic") ? [] : ["pine", "pine", "baretree"];
  if (setting.ground === "sand")
    return places.has("beach") || places.has("island") ? ["palm"] : ["cactus", "cactus"];
  if (setting.ground === "rock") return places.has("moonscape") ? [] : ["baretree"];
  if (setting.ground === "paved") return ["streetlamp", "tree", "tree", "bench"];
  if (places.has("garden")) return ["bush", "bush", "tulip", "flower", "rose", "blossom"];
  if (places.has("jungle")) return ["palm", "bush", "palm"];
  if (places.has("field") || places.has("road")) return ["tree"];
  if (setting.backdrops.includes("pinewood")) return ["pine", "pine", "bush"];
  if (setting.season === "spring") return ["tree", "blossom", "bush"];
  if (setting.season === "autumn") return ["tree", "birch", "pine"];
  return ["tree", "tree", "bush", "pine", "birch"];
}

/** Large trees at the sides, which make a wood a place to be in. */
function framing(stage: Stage, random: Random, actors: readonly Actor[]): Extra[] {
  const name = framingKind(stage);
  if (name === undefined) return [];
  const sides = stage.setting.ground === "sand" ? [random.chance(0.5) ? 0 : 1] : [0, 1];
  const tall = Math.min(stage.height * 0.86, shortSide * 1.25);
  return sides
    .map((side) => ({
      name,
      x:
        side === 0
          ? random.range(-0.03, 0.05) * shortSide
          : stage.width - random.range(-0.03, 0.05) * shortSide,
      y: stage.height - shortSide * random.range(0.02, 0.07),
      height: tall * random.range(0.72, 0.92),
      depth: 0,
    }))
    .filter(({ x }) =>
      actors.every((actor) => Math.abs(actor.x - x) > actor.drawing.width * actor.scale * 0.5 + 90),
    );
}

function framingKind({ setting, reading }: Stage): SubjectName | undefined {
  const { places } = reading;
  if (places.has("jungle") || places.has("island")) return "palm";
  if (places.has("beach")) return "palm";
  if (places.has("pinewood")) return "pine";
  if (!places.has("forest")) return undefined;
  return setting.season === "winter" ? "pine" : "tree";
}
