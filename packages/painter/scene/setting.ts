import type { Place, Season, Time } from "../prompt/vocabulary.ts";

/** What the near ground is made of. */
export type Ground = "grass" | "sand" | "snow" | "rock" | "paved";

/** Where and when a scene is: what the prompt says, and for the rest what suits it. */
export interface Setting {
  readonly kind: "outdoor" | "interior" | "underwater" | "space" | "studio" | "abstract";
  readonly time: Time;
  readonly season: Season;
  readonly ground: Ground;
  /** What stands at the horizon. */
  readonly backdrops: readonly Place[];
  readonly water: "none" | "sea" | "lake" | "river";
  /** Whether there is ground to stand on in front of the water, or moon under a sky of space. */
  readonly shore: boolean;
}
