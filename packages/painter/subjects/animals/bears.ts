import { lch } from "../../color/color.ts";
import { circle, ellipse, opacity, path } from "../../shapes.ts";
import { type Brush, type Drawing, made } from "../drawing.ts";
import { eyes } from "./sitting-animals.ts";

/** A bear's kind: round ears, a round head, a muzzle. */
function bruin(
  b: Brush,
  patches: { ears: string; eyes?: string; limbs?: string; muzzle: string; nose?: number },
): string {
  const limbs = patches.limbs ?? b.own(-0.05);
  return [
    ellipse(0, -34, 42, 38, b.own()),
    ellipse(0, -30, 26, 26, patches.limbs === undefined ? b.second(made.cream, -0.04) : b.own(0.01)),
    ellipse(-38, -40, 13, 22, limbs, 'transform="rotate(24 -38 -40)"'),
    ellipse(38, -40, 13, 22, limbs, 'transform="rotate(-24 38 -40)"'),
    ellipse(-24, -6, 17, 13, limbs) + ellipse(24, -6, 17, 13, limbs),
    ellipse(-24, -5, 9, 7, b.ink(made.pink, -0.1), opacity(0.6)) +
      ellipse(24, -5, 9, 7, b.ink(made.pink, -0.1), opacity(0.6)),
    circle(-26, -112, 12, patches.ears) + circle(26, -112, 12, patches.ears),
    circle(-26, -111, 6, b.ink(made.pink, -0.12), opacity(0.55)) +
      circle(26, -111, 6, b.ink(made.pink, -0.12), opacity(0.55)),
    ellipse(0, -90, 37, 32, b.own()),
    patches.eyes === undefined
      ? ""
      : ellipse(-15, -92, 10, 12, patches.eyes, 'transform="rotate(20 -15 -92)"') +
        ellipse(15, -92, 10, 12, patches.eyes, 'transform="rotate(-20 15 -92)"'),
    ellipse(0, -79, 15, 12, patches.muzzle),
    eyes(b, -93, 14, 4.2),
    ellipse(0, -84, patches.nose ?? 6, (patches.nose ?? 6) * 0.75, b.ink(made.black)),
    path(
      "M0 -80V-75Q-5 -70 -9 -74M0 -75Q5 -70 9 -74",
      "none",
      `stroke="${b.ink(made.dark)}" stroke-width="1.8" stroke-linecap="round"`,
    ),
  ].join("");
}

const bear: Drawing = {
  habitat: "forest",
  width: 110,
  height: 124,
  size: 0.44,
  colors: [lch(0.5, 0.08, 50), lch(0.58, 0.09, 58)],
  draw: (b) => bruin(b, { ears: b.own(-0.04), muzzle: b.second(made.cream, -0.04) }),
};

const panda: Drawing = {
  ...bear,
  colors: [made.white],
  draw: (b) =>
    bruin(b, {
      ears: b.ink(made.black),
      eyes: b.ink(made.black),
      limbs: b.ink(made.black),
      muzzle: b.own(0.01),
    }),
};

const koala: Drawing = {
  ...bear,
  width: 124,
  colors: [lch(0.7, 0.02, 255)],
  draw: (b) =>
    [-38, 38]
      .map((x) => circle(x, -104, 21, b.own(-0.04)) + circle(x, -103, 12, b.ink(made.pink, 0.05)))
      .join("") + bruin(b, { ears: "none", muzzle: b.own(0.08), nose: 9 }),
};

/** Bears and their like, by name. */
export const bears = { bear, panda, koala };
