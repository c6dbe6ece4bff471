import { lch } from "../color/color.ts";
import type { Subject } from "../prompt/read-prompt.ts";
import type { SubjectName } from "../prompt/subject-words.ts";
import type { Random } from "../random.ts";
import { ellipse, opacity, placed, rect } from "../shapes.ts";
import { type Stage, shortSide } from "../stage.ts";
import { type Drawing, isCentred, made } from "../subjects/drawing.ts";
import { drawings } from "../subjects/drawings.ts";
import { type Actor, extentOf, originOf, type Zone } from "./actor.ts";
import { drawAfloat } from "./afloat.ts";
import { brushFor } from "./brush-for.ts";
import { scatter } from "./scatter.ts";

/** Puts all subjects of the prompt in the zone that `zoneOf` names for each: side by side, larger ones farther back. */
export function castSubjects(stage: Stage, zoneOf: (drawing: Drawing, subject: Subject) => Zone): Actor[] {
  const { subjects } = stage.reading;
  const random = stage.random.fork("cast");
  const total = subjects.reduce(
    (sum, { count, many }) => sum + (many && subjects.length > 1 ? 0.5 : Math.sqrt(count)),
    0,
  );
  const crowd = Math.max(0.4, total <= 1 ? 1 : 1.04 / total ** 0.4);
  const zones = new Map<string, Actor[]>();
  const scattered: { subject: Subject; drawing: Drawing; zone: Zone }[] = [];
  for (const subject of subjects) {
    const drawing = drawings[subject.name];
    const zone = zoneOf(drawing, subject);
    if (subject.many && drawing.grows !== undefined && zone.kind === "ground") {
      scattered.push({ subject, drawing, zone });
      continue;
    }
    const key = `${zone.kind}:${Math.round(zone.top)}`;
    const actors = zones.get(key) ?? [];
    zones.set(key, actors);
    for (let index = 0; index < subject.count; index++) {
      actors.push(actorOf(stage, random, { subject, drawing, zone, crowd, index }));
    }
  }
  for (const actors of zones.values()) arrange(stage, random, actors);
  const placedActors = [...zones.values()].flat();
  for (const actor of placedActors) keepInside(stage, actor);
  mountRiders(placedActors);
  for (const entry of scattered) placedActors.push(...scatter(stage, random, entry, placedActors));
  return placedActors.sort((a, b) => footOf(a, placedActors) - footOf(b, placedActors));
}

interface Entry {
  readonly subject: Subject;
  readonly drawing: Drawing;
  readonly zone: Zone;
  readonly crowd: number;
  readonly index: number;
}

const tilting: ReadonlySet<SubjectName> = new Set(["rocket", "kite", "satellite"]);

function actorOf(stage: Stage, random: Random, { subject, drawing, zone, crowd, index }: Entry): Actor {
  const { colors, count } = subject;
  const several = count > 1 && colors.length > 1;
  const room = zone.right - zone.left;
  const wanted =
    (drawing.size * shortSide * crowd * (zone.scale ?? 1) * random.range(0.94, 1.06)) / drawing.height;
  const widest = (room * 0.86) / drawing.width;
  const tall = stage.height > stage.width ? Math.min(1.35, (stage.height / stage.width) ** 0.4) : 1;
  return {
    subject,
    drawing,
    zone,
    color: several ? colors[index % colors.length] : colors[0],
    second: several ? undefined : colors[1],
    x: 0,
    y: 0,
    scale: Math.min(wanted * tall, widest),
    flip: random.chance(0.5),
    turn: tilting.has(subject.name) && zone.kind !== "ground" ? random.range(-8, 34) : 0,
  };
}

/** Spreads actors over their zone; those of a crowded one in a row for each kind, the larger kinds behind. */
function arrange(stage: Stage, random: Random, actors: readonly Actor[]): void {
  const [first] = actors;
  if (first === undefined) return;
  const room = first.zone.right - first.zone.left;
  const full = actors.reduce((sum, actor) => sum + widthOf(actor), 0);
  if (actors.length === 1) alone(stage, random, first);
  else if (full < room * (actors.length < 4 ? 1.45 : 0.95)) inRow(random, actors, true);
  else {
    inRows(random, actors);
    return;
  }
  for (const [index, actor] of actors.entries()) actor.y = depthOf(random, actor, actors, index);
}

/** One row for each kind, the larger kinds farther back and a little smaller than they would be alone. */
function inRows(random: Random, actors: readonly Actor[]): void {
  const rows = [...Map.groupBy(actors, ({ subject }) => subject).values()];
  rows.sort(([a], [b]) => (b?.drawing.size ?? 0) - (a?.drawing.size ?? 0));
  for (const [index, row] of rows.entries()) {
    inRow(random, row, false);
    for (const actor of row) {
      const { zone } = actor;
      const nearness = rows.length === 1 ? 0.45 : index / (rows.length - 1);
      actor.y =
        zone.top + (zone.bottom - zone.top) * Math.min(1, Math.max(0, nearness + random.range(-0.14, 0.14)));
      if (zone.kind === "air" || zone.kind === "float")
        actor.y = depthOf(random, actor, actors, actors.indexOf(actor));
    }
  }
}

function widthOf({ drawing, scale }: Actor): number {
  return drawing.width * scale;
}

/** Moves an actor that reaches over a side of the picture back into it, or to the middle where it is too wide. */
function keepInside({ width }: Stage, actor: Actor): void {
  const { left, right } = extentOf(actor);
  // As far as drawings may go beyond what they say.
  const spare = (right - left) / 12;
  const [over, under] = [spare - left, right + spare - width];
  if (over > 0 && under > 0) actor.x += (over - under) / 2;
  else if (over > 0) actor.x += over;
  else if (under > 0) actor.x -= under;
}

/** Off the middle, away from the sun. */
function alone(stage: Stage, random: Random, actor: Actor): void {
  const { zone } = actor;
  const room = zone.right - zone.left;
  const side = stage.sun.x < stage.width / 2 ? 1 : -1;
  const slack = Math.max(0, (room - widthOf(actor)) / 2);
  actor.x = (zone.left + zone.right) / 2 + side * Math.min(slack * 0.55, room * random.range(0.06, 0.13));
}

function inRow(random: Random, actors: readonly Actor[], mixed: boolean): void {
  const [first] = actors;
  if (first === undefined) return;
  const { zone } = first;
  const room = zone.right - zone.left;
  const full = actors.reduce((sum, actor) => sum + widthOf(actor), 0);
  const squeeze = Math.min(1, Math.max(0.55, (room * (mixed ? 1 : 1.06)) / full));
  for (const actor of actors) actor.scale *= squeeze;
  const order = mixed ? shuffled(actors, random) : actors;
  const gap = (room * 0.96 - full * squeeze) / (order.length + 1);
  let x = zone.left + room * 0.02;
  for (const actor of order) {
    x += gap + widthOf(actor) / 2;
    actor.x = x + (gap > 20 ? random.range(-0.45, 0.45) * gap : 0);
    x += widthOf(actor) / 2;
  }
}

function shuffled(actors: readonly Actor[], random: Random): Actor[] {
  return actors
    .map((actor) => ({ actor, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ actor }) => actor);
}

/** On the ground small things stand nearer; elsewhere they are spread from top to bottom. */
function depthOf(
  random: Random,
  { drawing, zone, scale }: Actor,
  actors: readonly Actor[],
  index: number,
): number {
  const depth = zone.bottom - zone.top;
  if (zone.kind === "ground" || zone.kind === "water") {
    const largest = Math.max(...actors.map((actor) => actor.drawing.size));
    const nearness = actors.length === 1 ? 0.42 : 0.12 + 0.75 * (1 - drawing.size / largest);
    return zone.top + depth * Math.min(1, Math.max(0, nearness + random.range(-0.12, 0.12)));
  }
  const half = (drawing.height * scale) / 2;
  const part = actors.length === 1 ? random.range(0.3, 0.55) : (index * 0.618 + random.range(0, 0.12)) % 1;
  const [low, high] = [zone.top + half, zone.bottom - half];
  return low >= high ? (zone.top + zone.bottom) / 2 : low + (high - low) * part;
}

/** Who rides stands on the back of what carries it. */
function mountRiders(actors: readonly Actor[]): void {
  for (const rider of actors) {
    const carrier = carrierOf(rider, actors);
    if (carrier === undefined) continue;
    const { drawing, scale } = carrier;
    if (rider.subject.name === "umbrella") {
      const side = carrier.flip ? -1 : 1;
      rider.scale = (drawing.height * scale * 0.92) / rider.drawing.height;
      rider.x = carrier.x + side * drawing.width * scale * 0.3;
      rider.y = carrier.y - drawing.height * scale * 0.4;
      rider.flip = carrier.flip;
      continue;
    }
    rider.scale = Math.min(rider.scale, (drawing.height * scale * 0.8) / rider.drawing.height);
    rider.x = carrier.x;
    // What floats has its middle at its y, what stands its foot.
    const back = isCentred(drawing) && carrier.zone.kind !== "ground" ? 0.1 : 0.6;
    rider.y = carrier.y - drawing.height * scale * back;
    rider.flip = carrier.flip;
  }
}

function carrierOf(rider: Actor, actors: readonly Actor[]): Actor | undefined {
  if (rider.subject.carrier === undefined) return undefined;
  return actors.find(({ subject }) => subject.name === rider.subject.carrier);
}

/** Where an actor is sorted: a rider directly after what carries it. */
function footOf(actor: Actor, actors: readonly Actor[]): number {
  const carrier = carrierOf(actor, actors);
  return carrier === undefined ? actor.y : carrier.y + 0.01;
}

/** The subjects as layers under their names. */
export function drawCast(stage: Stage, actors: readonly Actor[]): void {
  for (const [index, actor] of actors.entries()) {
    const rails = actor.subject.name === "train" ? drawRails(stage, actor) : "";
    stage.canvas.layer(layerName(actor, index), rails, drawActor(stage, actor, index));
  }
}

/** The name of an actor's layer: one of a kind when it is the first. */
export function layerName({ subject }: Actor, index: number): string {
  return `subject-${subject.name}${index === 0 ? "" : `-${index}`}`;
}

/** An actor's drawing with its shadow, its mirror image or its wake. */
export function drawActor(stage: Stage, actor: Actor, index: number): string {
  const { drawing, subject, zone, x, scale, flip, turn, color, second } = actor;
  const random = stage.random.fork(`actor/${subject.name}/${index}`);
  const markup = drawing.draw(brushFor(stage, drawing, random, { main: color, second }));
  const image = placed(markup, { x, y: originOf(actor), scale, flip, turn });
  if (zone.kind === "water") return drawAfloat(stage, actor, markup);
  return zone.kind === "ground" && subject.carrier === undefined ? shadow(stage, actor) + image : image;
}

/** A railway from side to side. */
function drawRails({ width, light }: Stage, { y, scale }: Actor): string {
  const ties: string[] = [];
  for (let x = 0; x < width; x += 26)
    ties.push(rect(x, y - 4 * scale, 15, 9 * scale, light.ink(made.bark), 2));
  return ties.join("") + rect(0, y - 6 * scale, width, 4 * scale, light.ink(made.steel));
}

function shadow(stage: Stage, { drawing, x, y, scale }: Actor): string {
  const half = drawing.width * scale * 0.44;
  const away = Math.max(-0.3, Math.min(0.3, (x - stage.sun.x) / stage.width)) * half * 0.7;
  const ink = stage.light.ink(lch(0.25, 0.05, 270));
  return ellipse(
    x + away,
    y + 1,
    half,
    Math.max(3, half * 0.1),
    ink,
    opacity(stage.light.dark ? 0.36 : 0.24),
  );
}
