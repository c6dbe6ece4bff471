import type { Reading } from "../prompt/read-prompt.ts";
import type { Place, Season, Time } from "../prompt/vocabulary.ts";
import type { Random } from "../random.ts";
import type { Habitat } from "../subjects/drawing.ts";
import { drawings } from "../subjects/drawings.ts";
import type { Ground, Setting } from "./setting.ts";

const backdropPlaces: readonly Place[] = [
  "mountains",
  "volcano",
  "canyon",
  "desert",
  "waterfall",
  "arctic",
  "island",
  "hills",
  "city",
  "village",
  "forest",
  "pinewood",
  "jungle",
];
const seaPlaces: readonly Place[] = ["sea", "waves", "beach", "island"];
const outdoorPlaces: readonly Place[] = [
  ...backdropPlaces,
  ...seaPlaces,
  ...(["lake", "river", "meadow", "field", "garden", "road"] as const),
];

/** Decides what the prompt leaves open; the same reading and random stream give the same setting. */
export function settingOf(reading: Reading, random: Random): Setting {
  const kind = kindOf(reading);
  const habitats = habitatsOf(reading);
  const season =
    reading.season ?? (reading.weather.has("snow") || habitats.has("snow") ? "winter" : "summer");
  const time = timeOf(reading, random.fork("time"));
  const water = waterOf(reading, habitats);
  const backdrops = backdropsOf(reading, habitats, water, random.fork("backdrops"));
  const standing = (["land", "table", "studio", "snow", "desert", "forest"] as const).some((habitat) =>
    habitats.has(habitat),
  );
  const shore =
    kind === "space"
      ? reading.places.has("moonscape") || standing
      : water !== "sea" || reading.places.has("beach") || standing;
  return { kind, time, season, ground: groundOf(reading, habitats, season, water), backdrops, water, shore };
}

function habitatsOf({ subjects }: Reading): Set<Habitat> {
  return new Set(subjects.map(({ name }) => drawings[name].habitat));
}

function kindOf(reading: Reading): Setting["kind"] {
  const { places, subjects, sky, moods } = reading;
  const says = [reading.time, reading.season].some(Boolean) || reading.weather.size > 0 || sky.size > 0;
  if (places.size === 0 && subjects.length === 0) {
    if (sky.has("galaxy") && reading.time === undefined) return "space";
    if (!says || moods.has("abstract")) return "abstract";
    return "outdoor";
  }
  if (moods.has("abstract") && subjects.length === 0) return "abstract";
  if (places.has("underwater")) return "underwater";
  if (places.has("space") || places.has("moonscape")) return "space";
  const habitats = habitatsOf(reading);
  const outdoors = outdoorPlaces.some((place) => places.has(place));
  const onlyDeep = subjects.length > 0 && [...habitats].every((habitat) => habitat === "underwater");
  const onlySea = [...places.keys()].every((place) => place === "sea" || place === "waves");
  if (onlyDeep && onlySea && reading.time === undefined) return "underwater";
  if (places.has("interior")) return "interior";
  if (outdoors) return "outdoor";
  if (habitats.has("space")) return "space";
  if (habitats.has("table") && !says) return "interior";
  const plain = [...habitats].every((habitat) => habitat === "studio" || habitat === "table");
  return subjects.length > 0 && plain && !says ? "studio" : "outdoor";
}

function timeOf({ time, sky, weather, places, moods, subjects }: Reading, random: Random): Time {
  if (time !== undefined) return time;
  const nightly = (["moon", "crescent", "stars", "aurora", "galaxy", "fireworks", "comet"] as const).some(
    (sight) => sky.has(sight),
  );
  const nocturnal = subjects.some(({ name }) => name === "owl" || name === "ghost" || name === "campfire");
  if (nightly || nocturnal) return "night";
  if (moods.has("dark") || moods.has("neon")) return random.pick(["night", "dusk"]);
  if (moods.has("warm")) return random.pick(["golden", "sunset"]);
  if (weather.size > 0 || sky.has("sky") || sky.has("sun") || sky.has("rainbow"))
    return random.pick(["day", "morning"]);
  if (places.has("city")) return random.pick(["dusk", "sunset", "morning", "night"]);
  if (places.has("desert") || places.has("canyon")) return random.pick(["golden", "sunset", "day"]);
  return random.pick(["day", "day", "morning", "golden", "golden", "sunset", "dawn"]);
}

function waterOf({ places }: Reading, habitats: ReadonlySet<Habitat>): Setting["water"] {
  if (places.has("river") || places.has("waterfall")) return habitats.has("water") ? "lake" : "river";
  if (places.has("lake")) return "lake";
  if (seaPlaces.some((place) => places.has(place))) return "sea";
  if (!habitats.has("water") && !habitats.has("underwater")) return "none";
  const inland = (["mountains", "hills", "forest", "pinewood", "village", "canyon", "meadow"] as const).some(
    (place) => places.has(place),
  );
  return inland ? "lake" : "sea";
}

function groundOf(
  { places }: Reading,
  habitats: ReadonlySet<Habitat>,
  season: Season,
  water: Setting["water"],
): Ground {
  if (places.has("arctic") || habitats.has("snow")) return "snow";
  const sandy =
    places.has("desert") || places.has("beach") || (habitats.has("desert") && !places.has("meadow"));
  if (sandy) return "sand";
  if (places.has("island") || places.has("canyon") || places.has("moonscape"))
    return places.has("island") ? "sand" : "rock";
  if (season === "winter") return "snow";
  if (places.has("volcano")) return "rock";
  if (places.has("city")) return water === "none" ? "paved" : "grass";
  return "grass";
}

function backdropsOf(
  { places, season }: Reading,
  habitats: ReadonlySet<Habitat>,
  water: Setting["water"],
  random: Random,
): Place[] {
  const named = backdropPlaces.filter((place) => places.has(place));
  if (named.length > 0) return named;
  if (habitats.has("desert")) return ["desert"];
  if (habitats.has("snow")) return ["arctic"];
  if (habitats.has("forest")) return ["forest"];
  if (water === "sea") return random.chance(0.45) ? ["hills"] : [];
  if (water === "lake")
    return [...random.pick([["mountains"], ["hills", "forest"], ["mountains", "pinewood"]] as const)];
  if (season === "winter")
    return [
      ...random.pick([
        ["hills", "pinewood"],
        ["mountains", "pinewood"],
      ] as const),
    ];
  return [...random.pick([["hills"], ["hills"], ["mountains", "hills"], ["hills", "forest"]] as const)];
}
