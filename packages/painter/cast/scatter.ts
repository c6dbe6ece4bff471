import type { Subject } from "../prompt/read-prompt.ts";
import type { Random } from "../random.ts";
import { countOf, type Stage, shortSide } from "../stage.ts";
import type { Drawing } from "../subjects/drawing.ts";
import type { Actor, Zone } from "./actor.ts";

/**
 * Plants that the prompt names without a number, such as "trees" or "sunflowers": flowers as a field of them, smaller
 * towards the horizon, trees at the sides; clear of the other subjects.
 */
export function scatter(
  stage: Stage,
  random: Random,
  { subject, drawing, zone }: { subject: Subject; drawing: Drawing; zone: Zone },
  others: readonly Actor[],
): Actor[] {
  const field = drawing.grows === "field";
  const alone = stage.reading.subjects.length === 1;
  const count = field
    ? Math.min(220, countOf(stage, alone ? 95 : 34))
    : Math.round((stage.width / shortSide) * (alone ? 5 : 4)) + 1;
  const top = zone.top - (zone.bottom - zone.top) * (field ? 0.36 : 0.2);
  const actors = Array.from({ length: count }, (_, index): Actor => {
    const part = field ? random.next() ** 0.8 : random.next() * 0.72;
    const size = field ? (0.13 + 0.42 * part) * (alone ? 1.15 : 0.9) : 0.4 + 0.5 * part;
    const slot = (index + random.next()) / count;
    return {
      subject,
      drawing,
      zone,
      color: subject.colors[index % Math.max(1, subject.colors.length)],
      second: undefined,
      x: zone.left + (field ? random.next() : slot) * (zone.right - zone.left),
      y: top + part * ((field ? stage.height * 1.05 : zone.bottom) - top),
      scale: (drawing.size * shortSide * size * random.range(0.85, 1.15)) / drawing.height,
      flip: random.chance(0.5),
      turn: field ? random.range(-7, 7) : 0,
    };
  });
  return actors.filter((actor) => others.every((other) => isClear(actor, other)));
}

/** Whether a plant hides no other subject; what stands behind may be nearer. */
function isClear(plant: Actor, other: Actor): boolean {
  if (other.zone.kind !== plant.zone.kind)
    return Math.abs(other.x - plant.x) > 60 || plant.drawing.grows === "field";
  const reach = (other.drawing.width * other.scale + plant.drawing.width * plant.scale) / 2;
  const away = Math.abs(other.x - plant.x);
  return (
    away > reach * (plant.y < other.y ? 0.55 : 0.8) ||
    plant.y > other.y + plant.drawing.height * plant.scale * 0.85
  );
}
