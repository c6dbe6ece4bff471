import { drawAbstract } from "./abstract/abstract.ts";
import { Canvas } from "./canvas.ts";
import { extentOf } from "./cast/actor.ts";
import { castSubjects, drawActor, layerName } from "./cast/cast.ts";
import type { PaletteColor } from "./color/grade.ts";
import { Light } from "./color/light.ts";
import { type Reading, readPrompt } from "./prompt/read-prompt.ts";
import { Random } from "./random.ts";
import { settingOf } from "./scene/choose-setting.ts";
import { drawCosmos } from "./scene/cosmos.ts";
import { drawDepths } from "./scene/depths.ts";
import { drawInterior } from "./scene/interior.ts";
import { drawOutdoor } from "./scene/outdoor.ts";
import type { Setting } from "./scene/setting.ts";
import { drawStudio } from "./scene/studio.ts";
import { group, rect } from "./shapes.ts";
import { type Stage, shortSide } from "./stage.ts";

/** What to paint. The same request always gives the same markup. */
export interface PaintRequest {
  readonly prompt: string;
  readonly seed: string;
  /** Pixels; their ratio decides the composition, not their number. */
  readonly width: number;
  readonly height: number;
  /** How large the document is beside that; 1 unless given. A preview of the same picture is smaller. */
  readonly zoom?: number;
  /** How much detail. */
  readonly quality: "low" | "medium" | "high";
  /** The subjects alone; where the prompt has none, the scene as a badge. */
  readonly transparent: boolean;
  /** Colours to steer towards; none leaves them to the prompt. */
  readonly palette: readonly PaletteColor[];
  /** A postcard has faded colours and a border of paper. */
  readonly look: "plain" | "postcard";
}

const details = { low: 0.45, medium: 1, high: 1.7 } as const;

/** A picture of what the prompt says as an SVG document: no text but its title, no scripts, nothing from outside. */
export function paintSvg(request: PaintRequest): string {
  const stage = stageOf(request);
  if (!request.transparent) drawScene(stage);
  else if (stage.cutOut) drawCutOut(stage);
  else drawBadge(stage);
  if (request.look === "postcard") drawBorder(stage);
  const { width, height, zoom = 1, prompt } = request;
  const pixels = (side: number) => Math.max(1, Math.round(side * zoom));
  return stage.canvas.toSvg(pixels(width), pixels(height), prompt);
}

function stageOf(request: PaintRequest): Stage {
  const random = new Random(`${request.prompt.trim().toLowerCase()}\0${request.seed}`);
  const reading = readPrompt(request.prompt);
  if (request.look === "postcard") reading.moods.add("vintage");
  const setting = settingFor(request, reading, random.fork("setting"));
  const unit = shortSide / Math.min(request.width, request.height);
  const [width, height] = [request.width, request.height].map(
    (pixels) => Math.round(pixels * unit * 10) / 10,
  ) as [number, number];
  const horizon = horizonOf(setting, reading, width, height, random.fork("horizon"));
  const light = new Light(reading, setting, request.palette, random.fork("light"));
  const sun = sunOf(setting, reading, width, horizon, random.fork("sun"));
  const canvas = new Canvas(width, height);
  return {
    width,
    height,
    horizon,
    canvas,
    light,
    reading,
    setting,
    detail: details[request.quality],
    sun,
    random,
    cutOut: request.transparent && reading.subjects.length > 0 && setting.kind !== "abstract",
  };
}

/** What is cut out of its scene is seen by daylight, unless the prompt says otherwise. */
function settingFor({ transparent }: PaintRequest, reading: Reading, random: Random): Setting {
  const setting = settingOf(reading, random);
  const open = reading.time === undefined && reading.sky.size === 0 && reading.moods.size === 0;
  return transparent && open ? { ...setting, time: "day" } : setting;
}

/** Land fills the lower two fifths, but in a tall picture no more than it needs. */
function horizonOf(
  setting: Setting,
  reading: Reading,
  width: number,
  height: number,
  random: Random,
): number {
  const wooded = setting.backdrops.some(
    (place) => place === "forest" || place === "pinewood" || place === "jungle" || place === "city",
  );
  const share = setting.water === "sea" ? 0.44 : setting.water === "lake" ? 0.42 : wooded ? 0.28 : 0.36;
  const airy = reading.sky.size > 0 && reading.subjects.length === 0 ? -0.05 : 0;
  return height - Math.min(height * (share + airy + random.range(-0.02, 0.02)), width * 1.25);
}

function sunOf(
  setting: Setting,
  reading: Reading,
  width: number,
  horizon: number,
  random: Random,
): Stage["sun"] {
  const usual = shortSide * 1.5;
  const sky = Math.min(horizon, usual + Math.max(0, horizon - usual) * 0.5);
  const grand =
    Math.min(1.7, Math.max(0.75, horizon / 620)) *
    (reading.sky.has("sun") || reading.sky.has("moon") ? 1.3 : 1);
  const [low, high, small, large] = sunPlaces[setting.time];
  const peaked = setting.backdrops.includes("mountains") || setting.backdrops.includes("city") ? 0.16 : 0;
  const x = width * (random.chance(0.5) ? random.range(0.2, 0.4) : random.range(0.6, 0.8));
  return {
    x,
    y: horizon - sky * Math.min(0.85, random.range(low, high) + peaked),
    radius: random.range(small, large) * grand,
  };
}

/** How high over the horizon, least and most, as parts of the sky; how large, least and most. */
const sunPlaces: Readonly<Record<Setting["time"], readonly [number, number, number, number]>> = {
  dawn: [0.06, 0.2, 62, 84],
  morning: [0.45, 0.6, 52, 68],
  day: [0.68, 0.8, 52, 68],
  golden: [0.3, 0.42, 62, 80],
  sunset: [0.06, 0.22, 78, 108],
  dusk: [-0.02, 0.06, 60, 76],
  night: [0.58, 0.76, 50, 70],
};

function drawScene(stage: Stage): void {
  switch (stage.setting.kind) {
    case "abstract":
      drawAbstract(stage);
      break;
    case "interior":
      drawInterior(stage);
      break;
    case "underwater":
      drawDepths(stage);
      break;
    case "space":
      drawCosmos(stage);
      break;
    case "studio":
      drawStudio(stage);
      break;
    default:
      drawOutdoor(stage);
  }
}

/** The subjects alone, as large as fits. */
function drawCutOut(stage: Stage): void {
  const { width, height, canvas } = stage;
  const zone = { left: 0, right: width, top: height * 0.5, bottom: height * 0.6, kind: "float" as const };
  const standing = { ...zone, kind: "ground" as const };
  const floats = (habitat: string) => habitat === "air" || habitat === "space" || habitat === "underwater";
  const actors = castSubjects(stage, ({ habitat }) => (floats(habitat) ? zone : standing));
  const boxes = actors.map((actor) => {
    const box = extentOf(actor);
    const shadow = actor.zone.kind === "ground" ? actor.y + actor.drawing.height * actor.scale * 0.05 : 0;
    return { ...box, bottom: Math.max(box.bottom, shadow) };
  });
  const [left, right] = [
    Math.min(...boxes.map((box) => box.left)),
    Math.max(...boxes.map((box) => box.right)),
  ];
  const [top, bottom] = [
    Math.min(...boxes.map((box) => box.top)),
    Math.max(...boxes.map((box) => box.bottom)),
  ];
  const scale = Math.min((width * 0.84) / (right - left), (height * 0.84) / (bottom - top));
  const [x, y] = [width / 2 - ((left + right) / 2) * scale, height / 2 - ((top + bottom) / 2) * scale];
  const place = (value: number) => Math.round(value * 1_000) / 1_000;
  for (const [index, actor] of actors.entries()) {
    const markup = group(
      `transform="translate(${place(x)} ${place(y)}) scale(${place(scale)})"`,
      drawActor(stage, actor, index),
    );
    canvas.layer(layerName(actor, index), markup);
  }
}

/** The scene within a rounded outline; a disc where the picture is square. */
function drawBadge(stage: Stage): void {
  const { width, height, canvas } = stage;
  drawScene(stage);
  const inset = shortSide * 0.04;
  canvas.clipAll(
    canvas.clip(rect(inset, inset, width - 2 * inset, height - 2 * inset, "#000", shortSide / 2 - inset)),
  );
}

function drawBorder({ width, height, canvas, light }: Stage): void {
  const paper = light.ink({ l: 0.97, c: 0.02, h: 85 }, { glows: true });
  const line = light.ink({ l: 0.72, c: 0.05, h: 60 }, { glows: true });
  const edge = shortSide * 0.045;
  const frame = (inset: number, color: string, thick: number) =>
    `<rect x="${inset}" y="${inset}" width="${width - 2 * inset}" height="${height - 2 * inset}" fill="none" stroke="${color}" stroke-width="${thick}"/>`;
  canvas.layer("border", frame(edge / 2, paper, edge), frame(edge + 1, line, 2));
}
