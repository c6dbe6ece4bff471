import type { Mood } from "../prompt/vocabulary.ts";
import type { Stage } from "../stage.ts";
import { drawField, drawSilk, drawWaves } from "./abstract-lines.ts";
import { type AbstractMode, schemeOf } from "./abstract-scheme.ts";
import { drawBauhaus, drawFacets, drawMosaic, drawOrbits } from "./abstract-shapes.ts";

const modes: Readonly<Partial<Record<Mood, AbstractMode>>> = {
  geometric: drawBauhaus,
  flowing: drawSilk,
  circles: drawOrbits,
  waving: drawWaves,
  mosaic: drawMosaic,
  polygons: drawFacets,
  calm: drawWaves,
};

const allModes: readonly AbstractMode[] = [
  drawSilk,
  drawField,
  drawWaves,
  drawBauhaus,
  drawFacets,
  drawMosaic,
  drawOrbits,
];

/** A picture for a prompt that names nothing to be seen: colours in harmony, in the manner that its mood asks for. */
export function drawAbstract(stage: Stage): void {
  const random = stage.random.fork("abstract");
  const scheme = schemeOf(stage, random.fork("scheme"));
  const named = [...stage.reading.moods].flatMap((mood) => modes[mood] ?? []);
  const draw = named[0] ?? random.pick(allModes);
  stage.canvas.layer("abstract", draw(stage, random.fork("drawing"), scheme));
}
