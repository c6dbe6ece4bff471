import { type Lch, lch, lift } from "../color/color.ts";
import type { Light } from "../color/light.ts";
import type { Random } from "../random.ts";
import { circle, path } from "../shapes.ts";

/** Where a thing is at home, which decides the scene if the prompt does not. */
export type Habitat =
  | "land"
  | "forest"
  | "desert"
  | "snow"
  | "water"
  | "air"
  | "underwater"
  | "space"
  | "table"
  | "studio";

/** Distances from the sides of a box outwards; 0 unless given. */
export interface Reach {
  readonly left?: number;
  readonly right?: number;
  readonly top?: number;
  readonly bottom?: number;
}

/** How to draw one thing. It stands on 0,0 and is `height` high; what flies or swims has its middle there. */
export interface Drawing {
  readonly habitat: Habitat;
  readonly width: number;
  readonly height: number;
  /** Its height in a picture of which it is the only subject, as a part of the shorter side. */
  readonly size: number;
  /** How far it is painted beyond that box, where this is more than a twelfth of it: smoke, strings, tails. */
  readonly reach?: Reach;
  /** It stands, though its home is where others float. */
  readonly standing?: boolean;
  /** How it grows where there are many: flowers in a field, trees here and there. */
  readonly grows?: "field" | "apart";
  /** Its main colours to choose from, if the prompt names none. */
  readonly colors: readonly Lch[];
  draw(brush: Brush): string;
}

const afloat: ReadonlySet<Habitat> = new Set(["air", "underwater", "space"]);

/** Whether a drawing has its middle, and not its foot, at 0,0. */
export function isCentred({ habitat, standing = false }: Drawing): boolean {
  return afloat.has(habitat) && !standing;
}

/** Colours of what things are made of. */
export const made = {
  white: lch(0.97, 0.008, 90),
  cream: lch(0.94, 0.04, 85),
  dark: lch(0.29, 0.02, 275),
  black: lch(0.22, 0.012, 270),
  wood: lch(0.58, 0.09, 58),
  bark: lch(0.44, 0.055, 48),
  straw: lch(0.84, 0.1, 82),
  stone: lch(0.74, 0.02, 255),
  brick: lch(0.56, 0.13, 35),
  slate: lch(0.46, 0.05, 262),
  tile: lch(0.58, 0.16, 34),
  metal: lch(0.8, 0.012, 250),
  steel: lch(0.58, 0.02, 255),
  glass: lch(0.82, 0.07, 225),
  gold: lch(0.83, 0.15, 84),
  leaf: lch(0.62, 0.14, 140),
  pine: lch(0.47, 0.09, 158),
  pink: lch(0.8, 0.1, 10),
  red: lch(0.6, 0.21, 27),
  orange: lch(0.74, 0.17, 55),
  yellow: lch(0.89, 0.16, 94),
  blue: lch(0.56, 0.15, 252),
  teal: lch(0.64, 0.11, 195),
  purple: lch(0.55, 0.16, 303),
  sand: lch(0.85, 0.08, 78),
  snow: lch(0.97, 0.012, 235),
  lamp: lch(0.91, 0.13, 86),
  fire: lch(0.76, 0.19, 50),
} as const satisfies Readonly<Record<string, Lch>>;

/** A fill that shines: from the middle of what it fills to its edge, or from its top to its foot. */
type Shine = (color: string, strength: number, from?: "middle" | "top") => string;

/** What a thing is drawn with: its colours under the light of the scene. */
export class Brush {
  readonly random: Random;
  /** Whether lamps and windows shine. */
  readonly lit: boolean;
  readonly winter: boolean;
  /** Leaves of the season. */
  readonly leaves: readonly Lch[];
  readonly main: Lch;
  readonly #second: Lch | undefined;
  readonly #light: Light;
  readonly #depth: number;
  readonly #shine: Shine;
  readonly #haloScale: number;

  constructor(
    light: Light,
    random: Random,
    look: {
      main: Lch;
      second?: Lch | undefined;
      depth?: number;
      leaves: readonly Lch[];
      winter: boolean;
      shine: Shine;
      /** How far halos reach, 0 to 1; 1 unless given. */
      haloScale?: number;
    },
  ) {
    this.#light = light;
    this.random = random;
    this.lit = light.dark;
    this.winter = look.winter;
    this.leaves = look.leaves;
    this.main = look.main;
    this.#second = look.second;
    this.#depth = look.depth ?? 0;
    this.#shine = look.shine;
    this.#haloScale = look.haloScale ?? 1;
  }

  /** A material's colour, lighter or darker by an amount. */
  ink(color: Lch, by = 0): string {
    return this.#light.ink(by === 0 ? color : lift(color, by), {
      depth: this.#depth,
      subject: this.#depth === 0,
    });
  }

  /** The main colour. */
  own(by = 0): string {
    return this.ink(this.main, by);
  }

  /** The second colour of the prompt, or another. */
  second(otherwise: Lch, by = 0): string {
    return this.ink(this.#second ?? otherwise, by);
  }

  /** A colour that shines by itself. */
  glow(color: Lch): string {
    return this.#light.ink(color, { glows: true });
  }

  /** Light around a lamp or flame, gone at its edge. */
  halo(x: number, y: number, radius: number, color: Lch, strength = 0.6): string {
    return circle(x, y, radius * this.#haloScale, this.#shine(this.glow(color), strength));
  }

  /** Two beams of a turning lamp at x, y, the left one up and the right one down, gone at their ends. */
  beams(x: number, y: number, reach: number, color: Lch, strength = 0.6): string {
    const [rise, half] = [reach * 0.06, reach * 0.11];
    const beam = (side: number) =>
      `M${x} ${y}L${x + side * reach} ${y + side * rise - half}V${y + side * rise + half}Z`;
    // One shape with the lamp in its middle, which is where the shine has its own.
    return path(beam(-1) + beam(1), this.#shine(this.glow(color), strength));
  }

  /** Light that falls through an outline, gone at its foot. */
  ray(d: string, color: Lch, strength: number): string {
    return path(d, this.#shine(this.glow(color), strength, "top"));
  }

  /** Glass with the lamp behind it lit or not. */
  pane(): string {
    return this.lit ? this.glow(made.lamp) : this.ink(made.glass, -0.22);
  }
}
