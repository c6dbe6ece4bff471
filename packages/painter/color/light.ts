import type { Reading } from "../prompt/read-prompt.ts";
import type { Random } from "../random.ts";
import type { Setting } from "../scene/setting.ts";
import { deepWaters, spaceSkies, timePalettes } from "../sky/sky-palettes.ts";
import { type Lch, lch, lift, mix, toHex } from "./color.ts";
import {
  type Grade,
  gradeOfColors,
  gradeOfMoods,
  gradeOfPalette,
  inOrder,
  type PaletteColor,
} from "./grade.ts";

/** How a colour is to be shown. */
export interface InkOptions {
  /** How far away, 0 to 1: 1 is lost in the haze. */
  readonly depth?: number;
  /** Shines by itself: the time of day does not dim it. */
  readonly glows?: boolean;
  /** One of the subjects: they are seen a little better than what is around them. */
  readonly subject?: boolean;
}

/** The light of a scene: turns colours as things have them into colours as they are seen. */
export class Light {
  /** From the top to the horizon, as seen. */
  readonly sky: readonly Lch[];
  /** What far things fade into, as seen. */
  readonly haze: Lch;
  /** The sun's or moon's disc, as seen. */
  readonly sun: Lch;
  /** Whether lamps and windows are lit. */
  readonly dark: boolean;
  readonly #ambient: number;
  readonly #tint: Lch;
  readonly #tintAmount: number;
  readonly #grade: Grade;
  readonly #hexes = new Map<string, string>();

  constructor(reading: Reading, setting: Setting, palette: readonly PaletteColor[], random: Random) {
    const look = timePalettes[setting.time];
    const { weather } = reading;
    const dull = weather.has("storm")
      ? 0.75
      : weather.has("rain") || weather.has("cloudy")
        ? 0.55
        : weather.has("fog")
          ? 0.4
          : 0;
    this.#grade = inOrder([
      gradeOfColors(reading.colors),
      gradeOfMoods(reading.moods),
      gradeOfPalette(palette),
    ]);
    const natural = overcast(skyOf(setting, random), dull, weather.has("storm"));
    const tinted = tintSky(natural, reading.sky.get("sky") ?? [], setting);
    this.sky = tinted.map(this.#grade);
    const low = setting.time === "sunset" || setting.time === "dawn" || setting.time === "dusk";
    const last = this.sky.at(-1) ?? lch(0.9, 0.02, 90);
    this.haze = low ? mix(last, this.skyAt(0.58), 0.55) : last;
    this.sun = this.#grade(discOf(reading, setting, look.sun));
    this.dark =
      setting.time === "night" ||
      setting.time === "dusk" ||
      (weather.has("storm") && setting.kind === "outdoor");
    const enclosed = setting.kind !== "outdoor";
    this.#ambient =
      enclosed && setting.kind !== "interior" ? 0.95 : look.ambient * (weather.has("storm") ? 0.8 : 1);
    this.#tint = enclosed
      ? (this.sky[1] ?? look.tint)
      : dull > 0
        ? mix(look.tint, lch(0.6, 0.02, 240), dull)
        : look.tint;
    this.#tintAmount = enclosed ? 0.1 : look.tintAmount;
  }

  /** What a thing's colour looks like here. */
  seen(color: Lch, { depth = 0, glows = false, subject = false }: InkOptions = {}): Lch {
    if (glows) return this.#grade(color);
    const ambient = this.#ambient + (subject ? (1 - this.#ambient) * 0.4 : 0);
    const dimmed = { l: color.l * ambient, c: color.c * (0.55 + 0.45 * ambient), h: color.h };
    const lit = this.#grade(mix(dimmed, this.#tint, this.#tintAmount * (subject ? 0.75 : 1)));
    return depth === 0 ? lit : mix(lit, this.haze, depth);
  }

  /** The same as `#rrggbb`. */
  ink(color: Lch, options: InkOptions = {}): string {
    const key = `${color.l},${color.c},${color.h},${options.depth ?? 0},${options.glows ?? false},${options.subject ?? false}`;
    const known = this.#hexes.get(key);
    if (known !== undefined) return known;
    const hex = toHex(this.seen(color, options));
    this.#hexes.set(key, hex);
    return hex;
  }

  /** The sky's colour between the top, 0, and the horizon, 1. */
  skyAt(part: number): Lch {
    const place = Math.min(1, Math.max(0, part)) * (this.sky.length - 1);
    const index = Math.min(this.sky.length - 2, Math.floor(place));
    return mix(this.sky[index] ?? this.haze, this.sky[index + 1] ?? this.haze, place - index);
  }
}

function skyOf(setting: Setting, random: Random): readonly Lch[] {
  if (setting.kind === "space") return random.pick(spaceSkies);
  if (setting.kind === "underwater") return random.pick(deepWaters);
  return random.pick(timePalettes[setting.time].skies);
}

function overcast(sky: readonly Lch[], amount: number, storm: boolean): Lch[] {
  return sky.map((color) => {
    const grey = mix(color, lch(color.l * 0.95, 0.02, 240), amount);
    return storm ? lift(grey, color.l > 0.5 ? -0.2 * color.l : 0.03) : grey;
  });
}

/** A sky of the colours that the prompt gives it, as light and dark as the sky was. */
function tintSky(sky: readonly Lch[], colors: readonly Lch[], setting: Setting): Lch[] {
  if (colors.length === 0) return [...sky];
  return sky.map((natural, index) => {
    const part = index / Math.max(1, sky.length - 1);
    const wanted = colors[Math.min(colors.length - 1, Math.floor(part * colors.length))] ?? natural;
    const night = setting.time === "night";
    const l = night
      ? natural.l * 0.75 + wanted.l * 0.12
      : natural.l * 0.45 + wanted.l * 0.55 + (part - 0.4) * 0.16;
    return { l: Math.min(0.96, l), c: wanted.c * (0.95 - 0.4 * part), h: wanted.h + 14 * part };
  });
}

function discOf(reading: Reading, setting: Setting, usual: Lch): Lch {
  const sights = setting.time === "night" ? (["moon", "crescent"] as const) : (["sun"] as const);
  const named = sights.flatMap((sight) => reading.sky.get(sight) ?? []);
  return named[0] ?? usual;
}
