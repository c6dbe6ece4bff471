import type { Zone } from "../cast/actor.ts";
import { castSubjects, drawCast } from "../cast/cast.ts";
import { drawDressing } from "../cast/dressing.ts";
import { drawIsland } from "../land/island.ts";
import { drawLand } from "../land/land.ts";
import { drawCanyon, drawDunes, drawHills, drawIce } from "../land/lowlands.ts";
import { drawMountains, drawVolcano } from "../land/mountains.ts";
import { drawCity, drawVillage } from "../land/town.ts";
import { drawWater } from "../land/water.ts";
import { drawWaterfall } from "../land/waterfall.ts";
import { drawWoods } from "../land/woods.ts";
import type { Subject } from "../prompt/read-prompt.ts";
import type { SubjectName } from "../prompt/subject-words.ts";
import type { Place } from "../prompt/vocabulary.ts";
import type { Random } from "../random.ts";
import { group } from "../shapes.ts";
import { drawSky } from "../sky/sky.ts";
import { drawFog, drawWeather } from "../sky/weather.ts";
import { type Stage, shortSide } from "../stage.ts";
import type { Drawing } from "../subjects/drawing.ts";

/** A landscape: sky, what stands at the horizon, water and land, the subjects, the weather. */
export function drawOutdoor(stage: Stage): void {
  const { canvas, setting, height, horizon } = stage;
  drawSky(stage);
  const backdrops = setting.backdrops.map((place) => ({ place, markup: drawBackdrop(stage, place) }));
  for (const { place, markup } of backdrops) canvas.layer(place, markup);
  const landTop = shoreOf(stage);
  const wet = setting.water === "sea" || setting.water === "lake";
  if (wet) {
    const bottom = setting.shore ? landTop + 60 : height;
    canvas.layer("water", drawWater(stage, bottom, backdrops.map(({ markup }) => markup).join("")));
  }
  const actors = castSubjects(stage, (drawing, subject) => zoneFor(stage, drawing, subject, landTop));
  const [dry, others] = [
    actors.filter(({ zone }) => zone.kind === "ground"),
    actors.filter(({ zone }) => zone.kind !== "ground"),
  ];
  if (stage.reading.weather.has("fog")) canvas.layer("fog", drawFog(stage, 0.5));
  drawCast(stage, others);
  if (!wet || setting.shore) {
    drawLand(stage, landTop);
    const dressing = drawDressing(stage, landTop, dry);
    canvas.layer("dressing", dressing.behind);
    drawCast(stage, dry);
    canvas.layer("framing", dressing.front);
  }
  if (horizon > 0) drawWeather(stage);
}

/** Where the near land begins: at the horizon, or at the shore. */
function shoreOf({ setting, height, horizon, reading }: Stage): number {
  if (setting.water !== "sea" && setting.water !== "lake") return horizon;
  const share = setting.water === "lake" ? 0.6 : reading.places.has("beach") ? 0.42 : 0.52;
  return horizon + (height - horizon) * share;
}

const shoreAnimals: ReadonlySet<SubjectName> = new Set(["crab", "starfish", "turtle"]);

function zoneFor(stage: Stage, drawing: Drawing, subject: Subject, landTop: number): Zone {
  const { width, height, horizon, setting } = stage;
  const margin = Math.min(width * 0.04, 60);
  const sides = { left: margin, right: width - margin };
  const wet = setting.water === "sea" || setting.water === "lake";
  if (drawing.habitat === "air" || drawing.habitat === "space") {
    return { ...sides, top: horizon * 0.06, bottom: horizon * 0.82, kind: "air" };
  }
  const ashore = setting.shore && shoreAnimals.has(subject.name);
  if (wet && !ashore && (drawing.habitat === "water" || drawing.habitat === "underwater")) {
    const bottom = setting.shore ? landTop : height;
    const depth = bottom - horizon;
    return {
      ...sides,
      top: horizon + depth * 0.22,
      bottom: horizon + depth * (setting.shore ? 0.72 : 0.66),
      kind: "water",
    };
  }
  const depth = height - landTop;
  return {
    ...sides,
    top: landTop + depth * 0.26,
    bottom: height - Math.min(depth * 0.16, 70),
    kind: "ground",
  };
}

function drawBackdrop(stage: Stage, place: Place): string {
  const random = stage.random.fork(place);
  const draw = backdrops[place];
  const markup = draw?.(stage, random) ?? "";
  if (stage.setting.water !== "sea" || place === "island" || place === "city" || place === "arctic")
    return markup;
  // Far away behind the sea: lower, and meeting the horizon.
  const squeeze = Math.min(0.6, (shortSide * 0.5) / stage.horizon);
  return group(`transform="translate(0 ${stage.horizon * (1 - squeeze)}) scale(1 ${squeeze})"`, markup);
}

const backdrops: Readonly<Partial<Record<Place, (stage: Stage, random: Random) => string>>> = {
  mountains: drawMountains,
  hills: drawHills,
  volcano: drawVolcano,
  canyon: drawCanyon,
  desert: drawDunes,
  arctic: drawIce,
  island: drawIsland,
  waterfall: drawWaterfall,
  city: drawCity,
  village: drawVillage,
  forest: (stage, random) => drawWoods(stage, random, "forest"),
  pinewood: (stage, random) => drawWoods(stage, random, "pinewood"),
  jungle: (stage, random) => drawWoods(stage, random, "jungle"),
};
