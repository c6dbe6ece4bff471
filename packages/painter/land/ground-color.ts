import { type Lch, lch } from "../color/color.ts";
import type { Stage } from "../stage.ts";

/** The near ground's own colour in full daylight. */
export function groundColor({ setting, reading }: Stage): Lch {
  const own = (
    ["meadow", "field", "hills", "desert", "beach", "garden", "moonscape", "canyon"] as const
  ).flatMap((place) => reading.places.get(place) ?? []);
  if (own[0] !== undefined) return earthy(own[0]);
  switch (setting.ground) {
    case "sand":
      return lch(0.85, 0.085, 76);
    case "snow":
      return lch(0.95, 0.016, 240);
    case "rock":
      return reading.places.has("canyon")
        ? lch(0.64, 0.12, 45)
        : reading.places.has("volcano")
          ? lch(0.52, 0.06, 28)
          : lch(0.56, 0.03, 280);
    case "paved":
      return lch(0.68, 0.02, 265);
    default:
      return grass[setting.season];
  }
}

/** A colour of the prompt as land has it: less pure. */
export function earthy({ l, c, h }: Lch): Lch {
  return lch(l + (0.7 - l) * 0.25, c * 0.68, h);
}

const grass = {
  spring: lch(0.78, 0.15, 132),
  summer: lch(0.7, 0.145, 138),
  autumn: lch(0.74, 0.12, 82),
  winter: lch(0.93, 0.016, 240),
};

/** Colours of leaves in the season; conifers keep theirs. */
export function leafColors({ setting }: Stage): readonly Lch[] {
  return leaves[setting.season];
}

const leaves: Readonly<Record<"spring" | "summer" | "autumn" | "winter", readonly Lch[]>> = {
  spring: [lch(0.76, 0.15, 130), lch(0.7, 0.14, 138), lch(0.84, 0.09, 355)],
  summer: [lch(0.58, 0.13, 142), lch(0.64, 0.14, 136), lch(0.54, 0.11, 152)],
  autumn: [lch(0.68, 0.17, 48), lch(0.77, 0.15, 72), lch(0.58, 0.18, 32), lch(0.72, 0.16, 60)],
  winter: [lch(0.9, 0.015, 240), lch(0.84, 0.02, 240)],
};
