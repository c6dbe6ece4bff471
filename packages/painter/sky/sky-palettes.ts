import { type Lch, lch } from "../color/color.ts";
import type { Time } from "../prompt/vocabulary.ts";

/** How a time of day looks. */
export interface TimePalette {
  /** Skies to choose from: colours from the top to the horizon. */
  readonly skies: readonly (readonly Lch[])[];
  /** How bright things are beside full daylight. */
  readonly ambient: number;
  /** What the light adds to every colour, and how much. */
  readonly tint: Lch;
  readonly tintAmount: number;
  readonly sun: Lch;
}

/** The looks of the times of day. */
export const timePalettes: Readonly<Record<Time, TimePalette>> = {
  dawn: {
    skies: [
      [lch(0.54, 0.09, 285), lch(0.68, 0.1, 325), lch(0.82, 0.1, 25), lch(0.92, 0.07, 75)],
      [lch(0.62, 0.09, 255), lch(0.76, 0.07, 300), lch(0.86, 0.08, 20), lch(0.93, 0.06, 60)],
      [lch(0.58, 0.07, 220), lch(0.75, 0.06, 240), lch(0.87, 0.07, 40), lch(0.94, 0.08, 80)],
    ],
    ambient: 0.86,
    tint: lch(0.8, 0.08, 30),
    tintAmount: 0.16,
    sun: lch(0.96, 0.07, 75),
  },
  morning: {
    skies: [
      [lch(0.7, 0.1, 235), lch(0.82, 0.07, 220), lch(0.92, 0.05, 120), lch(0.96, 0.05, 90)],
      [lch(0.74, 0.08, 215), lch(0.85, 0.06, 200), lch(0.94, 0.05, 95)],
    ],
    ambient: 0.98,
    tint: lch(0.9, 0.06, 85),
    tintAmount: 0.08,
    sun: lch(0.98, 0.06, 92),
  },
  day: {
    skies: [
      [lch(0.64, 0.13, 245), lch(0.76, 0.1, 235), lch(0.88, 0.06, 220), lch(0.95, 0.03, 200)],
      [lch(0.68, 0.1, 222), lch(0.81, 0.07, 208), lch(0.92, 0.035, 170), lch(0.95, 0.045, 95)],
      [lch(0.7, 0.1, 255), lch(0.82, 0.07, 250), lch(0.92, 0.04, 230)],
    ],
    ambient: 1,
    tint: lch(0.95, 0.03, 95),
    tintAmount: 0.04,
    sun: lch(0.97, 0.09, 95),
  },
  golden: {
    skies: [
      [lch(0.68, 0.08, 225), lch(0.8, 0.06, 150), lch(0.87, 0.1, 88), lch(0.91, 0.11, 78)],
      [lch(0.74, 0.08, 30), lch(0.82, 0.1, 55), lch(0.89, 0.11, 75), lch(0.94, 0.09, 88)],
    ],
    ambient: 0.93,
    tint: lch(0.8, 0.13, 70),
    tintAmount: 0.18,
    sun: lch(0.98, 0.09, 92),
  },
  sunset: {
    skies: [
      [
        lch(0.38, 0.11, 290),
        lch(0.53, 0.15, 350),
        lch(0.69, 0.17, 35),
        lch(0.83, 0.15, 65),
        lch(0.9, 0.12, 82),
      ],
      [lch(0.44, 0.1, 268), lch(0.6, 0.12, 320), lch(0.75, 0.15, 20), lch(0.88, 0.12, 62)],
      [lch(0.36, 0.11, 335), lch(0.52, 0.17, 15), lch(0.7, 0.18, 45), lch(0.86, 0.14, 75)],
      [lch(0.48, 0.08, 225), lch(0.66, 0.07, 330), lch(0.78, 0.14, 40), lch(0.9, 0.12, 72)],
    ],
    ambient: 0.72,
    tint: lch(0.56, 0.12, 5),
    tintAmount: 0.2,
    sun: lch(0.95, 0.11, 82),
  },
  dusk: {
    skies: [
      [
        lch(0.26, 0.08, 275),
        lch(0.39, 0.11, 292),
        lch(0.56, 0.13, 320),
        lch(0.72, 0.11, 10),
        lch(0.82, 0.09, 50),
      ],
      [lch(0.28, 0.07, 255), lch(0.42, 0.09, 262), lch(0.6, 0.09, 285), lch(0.78, 0.08, 340)],
    ],
    ambient: 0.6,
    tint: lch(0.44, 0.1, 300),
    tintAmount: 0.24,
    sun: lch(0.9, 0.1, 55),
  },
  night: {
    skies: [
      [lch(0.15, 0.05, 270), lch(0.21, 0.07, 268), lch(0.3, 0.085, 260), lch(0.4, 0.08, 245)],
      [lch(0.16, 0.06, 288), lch(0.24, 0.09, 288), lch(0.34, 0.1, 298), lch(0.45, 0.1, 318)],
      [lch(0.15, 0.04, 250), lch(0.22, 0.055, 238), lch(0.33, 0.06, 218), lch(0.44, 0.06, 202)],
    ],
    ambient: 0.62,
    tint: lch(0.36, 0.09, 268),
    tintAmount: 0.24,
    sun: lch(0.96, 0.03, 95),
  },
};

/** The sky of space, from the edge to the glow of a nebula. */
export const spaceSkies: readonly (readonly Lch[])[] = [
  [lch(0.12, 0.04, 275), lch(0.18, 0.07, 285), lch(0.25, 0.1, 300)],
  [lch(0.12, 0.03, 250), lch(0.18, 0.06, 255), lch(0.27, 0.08, 235)],
  [lch(0.13, 0.04, 300), lch(0.2, 0.08, 320), lch(0.29, 0.11, 350)],
];

/** The water around an underwater scene, from the surface down. */
export const deepWaters: readonly (readonly Lch[])[] = [
  [lch(0.82, 0.1, 200), lch(0.64, 0.11, 220), lch(0.44, 0.11, 245), lch(0.3, 0.09, 262)],
  [lch(0.86, 0.09, 180), lch(0.68, 0.1, 195), lch(0.48, 0.09, 215), lch(0.32, 0.07, 240)],
];
