import { subjectWords } from "./subject-words.ts";

/** What a word can stand for, by kind. */
export type Meaning =
  | { readonly kind: "time"; readonly name: Time }
  | { readonly kind: "season"; readonly name: Season }
  | { readonly kind: "weather"; readonly name: Weather }
  | { readonly kind: "sky"; readonly name: SkySight }
  | { readonly kind: "place"; readonly name: Place }
  | { readonly kind: "mood"; readonly name: Mood }
  | { readonly kind: "subject"; readonly name: string };

/** Time of day. */
export type Time = "dawn" | "morning" | "day" | "golden" | "sunset" | "dusk" | "night";
/** Season of the year. */
export type Season = "spring" | "summer" | "autumn" | "winter";
/** Weather. */
export type Weather = "clear" | "cloudy" | "rain" | "storm" | "snow" | "fog" | "wind";
/** What is seen in the sky. */
export type SkySight =
  | "sky"
  | "sun"
  | "moon"
  | "crescent"
  | "stars"
  | "galaxy"
  | "comet"
  | "aurora"
  | "rainbow"
  | "clouds"
  | "fireworks";
/** Where a scene is. */
export type Place =
  | "mountains"
  | "hills"
  | "volcano"
  | "canyon"
  | "desert"
  | "sea"
  | "waves"
  | "lake"
  | "river"
  | "beach"
  | "island"
  | "waterfall"
  | "forest"
  | "pinewood"
  | "jungle"
  | "meadow"
  | "field"
  | "garden"
  | "city"
  | "village"
  | "road"
  | "arctic"
  | "underwater"
  | "space"
  | "moonscape"
  | "interior";
/** How a picture is to feel. */
export type Mood =
  | "abstract"
  | "geometric"
  | "flowing"
  | "circles"
  | "waving"
  | "mosaic"
  | "polygons"
  | "calm"
  | "vibrant"
  | "pastel"
  | "monochrome"
  | "vintage"
  | "neon"
  | "dark"
  | "warm"
  | "cold";

const words = (text: string): readonly string[] => text.split(" ");

const times: Record<Time, string> = {
  dawn: "dawn sunrise daybreak aurorean early-morning first-light",
  morning: "morning breakfast",
  day: "day daytime daylight noon midday afternoon sunlit",
  golden: "golden-hour evening late-afternoon",
  sunset: "sunset sundown sun-set setting-sun",
  dusk: "dusk twilight blue-hour gloaming nightfall",
  night: "night nighttime midnight nocturnal moonlit moonlight starlit nightscape",
};

const seasons: Record<Season, string> = {
  spring: "spring springtime april blooming blossoming",
  summer: "summer summertime july",
  autumn: "autumn autumn-leaf fallen-leaf autumnal fall october november",
  winter: "winter wintertime wintry december january christmas frosty frozen icy",
};

const weathers: Record<Weather, string> = {
  clear: "clear cloudless sunny sunshine bright-sky",
  cloudy: "cloudy overcast",
  rain: "rain rainy raining rainfall drizzle downpour monsoon shower",
  storm: "storm stormy thunder thunderstorm lightning tempest hurricane",
  snow: "snow snowy snowing snowfall snowflake blizzard snow-covered snowstorm",
  fog: "fog foggy mist misty haze hazy smoky",
  wind: "wind windy breeze breezy gale",
};

const skies: Record<SkySight, string> = {
  sky: "sky heaven horizon",
  sun: "sun sunbeam",
  moon: "moon full-moon",
  crescent: "crescent crescent-moon half-moon",
  stars: "starry stars starry-night starry-sky constellation",
  galaxy: "galaxy milky-way cosmos universe",
  comet: "comet meteor shooting-star falling-star",
  aurora: "aurora aurora-borealis northern-light polar-light",
  rainbow: "rainbow",
  clouds: "cloud cumulus",
  fireworks: "firework",
};

const places: Record<Place, string> = {
  mountains:
    "mountain mountainous peak summit alp alpine himalaya everest fuji highland mountaintop range cliff fjord",
  hills: "hill hilly hillside rolling knoll countryside landscape scenery scene tuscany",
  volcano: "volcano volcanic eruption lava",
  canyon: "canyon gorge mesa badland grand-canyon wild-west butte",
  desert: "desert dune sahara sand oasis arid",
  sea: "sea ocean seascape pacific atlantic mediterranean marine nautical harbor harbour port seaside coast coastal coastline shore-line bay",
  waves: "wave surf tide tsunami",
  lake: "lake pond lagoon loch reservoir lakeside reflection",
  river: "river stream creek brook canal",
  beach: "beach shore seashore sandy tropical hawaii caribbean",
  island: "island isle atoll archipelago",
  waterfall: "waterfall cascade",
  forest: "forest wood woodland grove thicket park",
  pinewood: "taiga pine-forest evergreen conifer redwood",
  jungle: "jungle rainforest",
  meadow: "meadow pasture prairie grassland grass savanna savannah lawn steppe",
  field: "field farmland wheat crop harvest farm vineyard corn lavender-field",
  garden: "garden flowerbed orchard",
  city: "city town skyline cityscape downtown metropolis urban skyscraper street manhattan tokyo paris london york avenue rooftop building",
  village: "village hamlet township suburb",
  road: "road path highway trail lane route",
  arctic: "arctic antarctic antarctica iceberg glacier polar ice tundra north-pole south-pole",
  underwater: "underwater undersea reef coral coral-reef aquarium seabed deep-sea submerged",
  space: "space outer-space nebula orbit interstellar cosmic solar-system deep-space",
  moonscape: "lunar moon-surface mars martian alien-planet",
  interior: "room kitchen table indoor interior desk shelf windowsill cafe living-room bedroom still-life",
};

const moods: Record<Mood, string> = {
  abstract: "abstract abstraction pattern",
  geometric: "geometric geometry bauhaus shape cubist cubism constructivist square triangle",
  flowing: "flow flowing ribbon swirl swirling dream dreamy silk music jazz melody dance fluid",
  circles: "circle concentric ripple meditation mandala zen spiral orbiting target",
  waving: "wavy undulating rhythm sound frequency echo",
  mosaic: "mosaic stained-glass tile kaleidoscope patchwork",
  polygons: "low-poly polygon polygonal crystal crystalline facet shard origami",
  calm: "calm peaceful serene tranquil quiet minimal minimalist minimalistic gentle silence",
  vibrant: "vibrant colorful colourful vivid saturated lively energetic joyful happy",
  pastel: "pastel dreamlike delicate",
  monochrome: "monochrome monochromatic black-and-white noir greyscale grayscale",
  vintage: "vintage retro sepia nostalgic antique old-fashioned",
  neon: "neon cyberpunk synthwave vaporwave electric",
  dark: "dark gloomy moody sombre somber mysterious spooky eerie",
  warm: "warm cozy cosy hot heat fiery",
  cold: "cold cool chilly freezing",
};

function entries(): Map<string, Meaning> {
  const index = new Map<string, Meaning>();
  const add = (kind: Meaning["kind"], table: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(table)) {
      for (const word of words(text)) index.set(word, { kind, name } as Meaning);
    }
  };
  add("mood", moods);
  add("place", places);
  add("sky", skies);
  add("weather", weathers);
  add("season", seasons);
  add("time", times);
  add("subject", subjectWords);
  return index;
}

const meanings: ReadonlyMap<string, Meaning> = entries();

/** Longest phrase that the vocabulary knows, in words. */
export const longestPhrase = Math.max(...[...meanings.keys()].map((word) => word.split("-").length));

const irregular: Readonly<Record<string, string>> = {
  leaves: "leaf",
  geese: "goose",
  mice: "mouse",
  wolves: "wolf",
  people: "person",
  men: "man",
  women: "woman",
  children: "child",
  knives: "knife",
  buses: "bus",
  octopi: "octopus",
  cacti: "cactus",
  foxes: "fox",
  churches: "church",
  beaches: "beach",
  torches: "torch",
  waltzes: "waltz",
};

/** What a word or a phrase joined by hyphens means, and whether it was a plural; undefined if it is not known. */
export function lookUp(word: string): { meaning: Meaning; plural: boolean } | undefined {
  const exact = meanings.get(word);
  if (exact !== undefined) return { meaning: exact, plural: false };
  for (const singular of singularsOf(word)) {
    const meaning = meanings.get(singular);
    if (meaning !== undefined) return { meaning, plural: true };
  }
  return undefined;
}

function singularsOf(word: string): string[] {
  const last = word.slice(word.lastIndexOf("-") + 1);
  const forms = [word.slice(0, word.length - last.length) + (irregular[last] ?? "")];
  if (word.endsWith("ies")) forms.push(`${word.slice(0, -3)}y`);
  if (word.endsWith("es")) forms.push(word.slice(0, -2));
  if (word.endsWith("s")) forms.push(word.slice(0, -1));
  return forms;
}
