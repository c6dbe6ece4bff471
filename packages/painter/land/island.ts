import { brushFor } from "../cast/brush-for.ts";
import { lch } from "../color/color.ts";
import type { Random } from "../random.ts";
import { ellipse, num, path, placed } from "../shapes.ts";
import type { Stage } from "../stage.ts";
import { drawings } from "../subjects/drawings.ts";
import { rise } from "./mountains.ts";
import { misty } from "./ridge.ts";

/** A green island with palms on a strip of sand. */
export function drawIsland(stage: Stage, random: Random): string {
  const { horizon, width } = stage;
  const x = width * random.range(0.36, 0.64);
  const half = Math.min(width * 0.36, 380);
  const high = 130 * Math.min(1.5, rise(stage));
  const green = stage.reading.places.get("island")?.[0] ?? lch(0.6, 0.14, 148);
  const hump = `M${num(x - half)} ${horizon + 2}C${num(x - half * 0.6)} ${num(horizon - high * 0.9)} ${num(x - half * 0.25)} ${num(horizon - high * 1.5)} ${num(x)} ${num(horizon - high)}C${num(x + half * 0.3)} ${num(horizon - high * 1.1)} ${num(x + half * 0.62)} ${num(horizon - high * 0.7)} ${num(x + half)} ${horizon + 2}Z`;
  const palms = [-0.72, -0.5, 0.42, 0.66].map((at) => {
    const drawing = drawings.palm;
    const scale = random.range(0.75, 1.05) * Math.min(1.3, half / 330);
    return placed(drawing.draw(brushFor(stage, drawing, random, { depth: 0.1 })), {
      x: x + at * half,
      y: horizon - 2,
      scale,
      flip: at < 0,
    });
  });
  const sand = ellipse(x, horizon + 2, half * 1.16, 15, stage.light.ink(lch(0.9, 0.07, 82), { depth: 0.1 }));
  return path(hump, misty(stage, green, 0.14, 0.15)) + palms.join("") + sand;
}
