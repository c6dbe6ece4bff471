import { castSubjects, drawCast } from "../cast/cast.ts";
import { hueDistance, type Lch, lch, lift } from "../color/color.ts";
import { circle, ellipse, num, opacity, path, rect } from "../shapes.ts";
import { vignette } from "../sky/weather.ts";
import type { Stage } from "../stage.ts";
import { drawings } from "../subjects/drawings.ts";

/** A thing by itself before a plain ground, as on a poster: rays or rings around it, and small shapes. */
export function drawStudio(stage: Stage): void {
  const { canvas, light, width, height } = stage;
  const random = stage.random.fork("studio");
  const color = backdropColor(stage);
  const edge = height - Math.min(height * 0.2, width * 0.34);
  const wall = canvas.linear([
    { at: 0, color: light.seen(lift(color, -0.06)) },
    { at: 1, color: light.seen(lift(color, 0.05)) },
  ]);
  canvas.layer("wall", rect(0, 0, width, height, wall));
  const [x, y] = [width / 2, edge - Math.min(height, width) * 0.32];
  const reach = Math.min(width, height);
  canvas.layer("rays", random.chance(0.5) ? sunburst(stage, color, x, y) : "");
  canvas.layer(
    "disc",
    circle(x, y, reach * 0.45, light.ink(lift(color, 0.05)), opacity(0.75)),
    circle(x, y, reach * 0.36, light.ink(lift(color, 0.09)), opacity(0.8)),
  );
  canvas.layer(
    "floor",
    rect(0, edge, width, height - edge, light.ink({ ...lift(color, -0.13), h: color.h + 12 })),
    ellipse(x, edge + 2, reach * 0.7, 9, light.ink(lift(color, -0.05)), opacity(0.7)),
  );
  canvas.layer("confetti", confetti(stage, color, edge));
  const zone = {
    left: width * 0.06,
    right: width * 0.94,
    top: edge + (height - edge) * 0.14,
    bottom: edge + (height - edge) * 0.55,
    kind: "ground" as const,
    scale: 1.1,
  };
  const actors = castSubjects(stage, () => zone);
  const [only] = actors;
  if (only !== undefined && actors.length === 1) only.x = width / 2;
  drawCast(stage, actors);
  canvas.layer("vignette", vignette(stage));
}

/** A soft colour across the wheel from the subject's own. */
function backdropColor(stage: Stage): Lch {
  const random = stage.random.fork("backdrop");
  const { subjects, colors } = stage.reading;
  const first = subjects[0];
  const own = first === undefined ? undefined : (first.colors[0] ?? drawings[first.name].colors[0]);
  if (colors[0] !== undefined)
    return lch(Math.max(0.55, colors[0].l), Math.min(0.12, colors[0].c), colors[0].h);
  const hue =
    (own === undefined || own.c < 0.03 ? random.range(0, 360) : own.h + random.range(130, 230)) % 360;
  return lch(hueDistance(hue, 95) < 30 ? 0.88 : 0.8, random.range(0.06, 0.1), hue);
}

function sunburst({ width, height, light }: Stage, color: Lch, x: number, y: number): string {
  const reach = Math.hypot(width, height);
  const rays = Array.from({ length: 18 }, (_, index) => {
    const [from, to] = [index * 20, index * 20 + 10].map((angle) => (angle * Math.PI) / 180);
    const at = (angle = 0) => `${num(x + Math.cos(angle) * reach)} ${num(y + Math.sin(angle) * reach)}`;
    return `M${num(x)} ${num(y)}L${at(from)}L${at(to)}Z`;
  });
  return path(rays.join(""), light.ink(lift(color, 0.05)), opacity(0.55));
}

function confetti(stage: Stage, color: Lch, edge: number): string {
  const random = stage.random.fork("confetti");
  const hues = [color.h + 150, color.h + 190, color.h + 60].map((h) => lch(0.78, 0.12, h % 360));
  const count =
    Math.round(
      (10 * stage.detail * Math.max(stage.width, stage.height)) / Math.min(stage.width, stage.height),
    ) + 6;
  return Array.from({ length: count }, () => {
    const [x, y, r] = [
      random.range(0.03, 0.97) * stage.width,
      random.range(0.04, 0.95) * edge,
      random.range(7, 15),
    ];
    const ink = stage.light.ink(random.pick(hues));
    const kind = random.int(0, 2);
    if (kind === 0) return circle(x, y, r * 0.7, ink);
    if (kind === 1)
      return `<circle cx="${num(x)}" cy="${num(y)}" r="${num(r)}" fill="none" stroke="${ink}" stroke-width="4"/>`;
    return path(`M${num(x)} ${num(y - r)}L${num(x + r)} ${num(y + r * 0.8)}H${num(x - r)}Z`, ink);
  }).join("");
}
