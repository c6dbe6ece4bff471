import { lch, lift, mix, toHex } from "../color/color.ts";
import type { Random } from "../random.ts";
import { ellipse, num, opacity, rect, straight, stroke } from "../shapes.ts";
import type { Stage } from "../stage.ts";
import { groundColor } from "./ground-color.ts";
import { rise } from "./mountains.ts";
import { below, farInk, misty } from "./ridge.ts";

const rock = lch(0.52, 0.035, 250);
const halfWidth = 92;

/** A cliff with falling water, white at its foot. */
export function drawWaterfall(stage: Stage, random: Random): string {
  const high = 460 * rise(stage);
  const top = stage.horizon - high;
  const x = stage.width * random.range(0.44, 0.56);
  return cliff(stage, random, x, top) + fall(stage, random, x, top) + spray(stage, random, x);
}

function cliff(stage: Stage, random: Random, x: number, top: number): string {
  const { horizon, width, light } = stage;
  const noise = random.noise();
  const brow: number[] = [];
  for (let at = -40; at <= width + 40; at += 24) {
    brow.push(at, top + Math.abs(at - x) * 0.13 + 20 * noise(at / 110, 3) - 12);
  }
  const green = light.seen(mix(groundColor(stage), lch(0.55, 0.13, 148), 0.6), { depth: 0.08 });
  const upper = brow.map((value, index) => (index % 2 === 1 ? value - 9 : value));
  const ledges = Array.from({ length: 26 }, () => {
    const [lx, ly] = [random.range(0, width), random.range(top + 70, horizon - 20)];
    if (Math.abs(lx - x) < halfWidth) return "";
    const ledge = `l${num(random.range(20, 60))} ${num(random.range(-6, 10))}v${num(random.range(10, 40))}`;
    return stroke(`M${num(lx)} ${num(ly)}${ledge}`, farInk(stage, rock, 0.15, -0.07), 5, opacity(0.5));
  });
  return [
    below(brow, horizon + 2, misty(stage, rock, 0.16, 0.3)),
    stroke(straight(brow), toHex(lift(green, -0.05)), 34),
    stroke(straight(upper), toHex(green), 20),
    ...ledges,
  ].join("");
}

function fall(stage: Stage, random: Random, x: number, top: number): string {
  const { canvas, light, horizon } = stage;
  const fill = canvas.linear([
    { at: 0, color: light.seen(lch(0.86, 0.05, 220)) },
    { at: 0.6, color: light.seen(lch(0.94, 0.025, 215)) },
    { at: 1, color: light.seen(lch(0.98, 0.01, 210)) },
  ]);
  const strands = Array.from({ length: 16 }, () => {
    const start = `M${num(x + random.range(-halfWidth, halfWidth) * 0.9)} ${num(top + random.range(8, 160))}`;
    const color = light.ink(random.chance(0.6) ? lch(0.99, 0.005, 210) : lch(0.78, 0.06, 225));
    return stroke(`${start}v${num(random.range(90, 260))}`, color, random.range(3, 9), opacity(0.6));
  });
  return rect(x - halfWidth, top + 6, halfWidth * 2, horizon - top, fill, 22) + strands.join("");
}

function spray({ light, horizon }: Stage, random: Random, x: number): string {
  const white = light.ink(lch(0.98, 0.01, 210));
  return Array.from({ length: 12 }, () => {
    const [cx, cy] = [x + random.range(-halfWidth, halfWidth) * 1.7, horizon - random.range(0, 34)];
    return ellipse(cx, cy, random.range(40, 90), random.range(18, 40), white, opacity(0.3));
  }).join("");
}
