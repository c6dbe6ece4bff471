import { lch } from "../color/color.ts";
import type { SubjectName } from "../prompt/subject-words.ts";
import { ellipse, group, groupOpacity, num, opacity, path, placed, rect } from "../shapes.ts";
import type { Stage } from "../stage.ts";
import type { Actor } from "./actor.ts";

const rocky: ReadonlySet<SubjectName> = new Set(["lighthouse"]);
const wading: ReadonlySet<SubjectName> = new Set(["bridge", "flamingo"]);

/** What floats is mirrored in the water; what swims shows its back; a lighthouse stands on rocks. */
export function drawAfloat(stage: Stage, actor: Actor, markup: string): string {
  const { drawing, subject, x, y, scale, flip } = actor;
  const image = placed(markup, { x, y, scale, flip });
  const half = (drawing.width * scale) / 2;
  const foam = stage.light.ink(lch(0.97, 0.015, 220));
  if (rocky.has(subject.name)) return rocks(stage, x, y, half) + image;
  if (drawing.habitat === "underwater") {
    const line = y + drawing.height * scale * 0.14;
    const clip = stage.canvas.clip(rect(0, 0, stage.width, line, "#000"));
    return group(clip, image) + ellipse(x, line, half * 0.95, half * 0.05, foam, opacity(0.7));
  }
  const wades = wading.has(subject.name);
  const dip = wades ? 0 : 8 * scale;
  const size = Math.round(scale * 1_000) / 1_000;
  const mirror = `<g transform="translate(${num(x)} ${num(y + dip * 1.4)}) scale(${flip ? -size : size} ${-Math.round(size * 550) / 1_000})" ${groupOpacity(0.26)}>${markup}</g>`;
  const wake = wades ? "" : ellipse(x, y + dip, half * 1.02, Math.max(3, half * 0.045), foam, opacity(0.55));
  return mirror + image + wake;
}

/** A low reef around the foot of what stands at x, y. */
function rocks({ light }: Stage, x: number, y: number, half: number): string {
  const [w, h] = [half * 2.1, half * 0.72];
  const rock = lch(0.5, 0.03, 265);
  const outline = (points: readonly (readonly [number, number])[]) =>
    `M${points.map(([dx, dy]) => `${num(x + dx * w)} ${num(y + dy * h)}`).join("L")}Z`;
  const body = outline([
    [-1, 0.75],
    [-0.74, 0.1],
    [-0.4, -0.06],
    [-0.33, -0.08],
    [0.45, -0.08],
    [0.5, 0.12],
    [0.82, 0.3],
    [1.04, 0.75],
  ]);
  const shade = outline([
    [0.1, -0.08],
    [0.45, -0.08],
    [0.5, 0.12],
    [0.82, 0.3],
    [1.04, 0.75],
    [0.2, 0.75],
    [0.3, 0.3],
  ]);
  const foam = light.ink(lch(0.97, 0.015, 220));
  return (
    path(body, light.ink(rock)) +
    path(shade, light.ink({ ...rock, l: 0.42 })) +
    ellipse(x, y + h * 0.76, w * 1.12, h * 0.13, foam, opacity(0.75)) +
    ellipse(x + w * 0.3, y + h * 0.9, w * 0.5, h * 0.06, foam, opacity(0.5))
  );
}
