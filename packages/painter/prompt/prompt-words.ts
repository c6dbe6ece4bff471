import type { Lch } from "../color/color.ts";
import { impliedColors } from "./color-words.ts";
import type { SubjectName } from "./subject-words.ts";

/** Words that say how many. */
export const counts: Readonly<Record<string, number>> = {
  one: 1,
  two: 2,
  pair: 2,
  couple: 2,
  three: 3,
  four: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  nine: 9,
  ten: 9,
  several: 4,
  few: 3,
  many: 7,
  flock: 7,
  herd: 5,
  fleet: 5,
  bunch: 4,
  group: 4,
  row: 4,
  school: 7,
  swarm: 8,
  dozen: 9,
};

/** A plural without a number. */
export const pluralCount = 3;
/** More kinds of things are not drawn. */
export const mostKinds = 10;
/** More of one kind are not drawn. */
export const mostOfOne = 9;

/** Words that take back the noun after them. */
export const negations: ReadonlySet<string> = new Set(["no", "without", "not", "never"]);
/** Who may hold an umbrella. */
export const holders: ReadonlySet<SubjectName> = new Set([
  "person",
  "robot",
  "cat",
  "dog",
  "fox",
  "bear",
  "rabbit",
  "frog",
  "penguin",
]);
/** Flowers that stand in vases. */
export const cutFlowers: ReadonlySet<SubjectName> = new Set([
  "flower",
  "tulip",
  "rose",
  "sunflower",
  "poppy",
  "lavender",
]);
/** Nouns that are their own plural. */
export const unchanging: ReadonlySet<string> = new Set([
  "fish",
  "sheep",
  "deer",
  "goldfish",
  "clownfish",
  "jellyfish",
  "starfish",
  "koi",
]);
/** Words that make such a noun singular. */
export const singulars: ReadonlySet<string> = new Set(["a", "an", "the", "one", "this", "my"]);
/** Words between which a colour does not reach. */
export const boundaries: ReadonlySet<string> = new Set(
  ", . ; : ! ? ( ) in on over at with under near by behind above below beside of across through between from".split(
    " ",
  ),
);
/** Words that tie a colour to the noun before. */
export const links: ReadonlySet<string> = new Set([
  "is",
  "are",
  "was",
  "painted",
  "colored",
  "coloured",
  "turning",
  "all",
]);
/** Words that put the noun before them on top of the one after. */
export const mounts: ReadonlySet<string> = new Set(["riding", "rides", "rode", "atop", "driving", "drives"]);
/** Words that say nothing to see, or ask for no more than a picture: nobody misses them in it. */
export const silentWords: ReadonlySet<string> = new Set(
  [
    "a an the this that these those and or but so than then as if of to for by off up down out into onto about around",
    "along against toward towards after before during until while where when which who whose what there here also too",
    "am be been being has have had having do does did can could may might will would shall should must let",
    "i me my mine we us our you your he him his she her it its they them their one's itself",
    "some any each every both either other another same such own only just very really quite rather so more most much",
    "please draw paint make create generate show showing shown depict depicting seen see featuring containing",
    "picture image illustration drawing painting artwork art depiction rendering",
  ]
    .join(" ")
    .split(" "),
);

/** How many unknown words may stand between a colour and its noun. */
export const reach = 3;

/** Words in Latin letters, words in others, numbers, and the marks that part sentences. */
const words =
  /\p{Script=Latin}+(?:'\p{Script=Latin}+)?|(?:(?!\p{Script=Latin})[\p{L}\p{M}])+|\d+|[,.;:!?()]/gu;

/** The words, numbers and marks of a prompt, in lower case and those in Latin letters without accents. */
export function tokensOf(prompt: string): string[] {
  const plain = prompt
    .slice(0, 4_000)
    .normalize("NFKD")
    .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
    .toLowerCase()
    .replaceAll("’", "'");
  return plain.match(words)?.map((token) => token.replace(/'s?$/, "")) ?? [];
}

/** The colour that a word says with what it names, as a list that may be empty. */
export function impliedBy(words: string): Lch[] {
  const singular = words.replace(/s$/, "");
  const name = [words, singular].find((word) => Object.hasOwn(impliedColors, word));
  const color = name === undefined ? undefined : impliedColors[name];
  return color === undefined ? [] : [color];
}
