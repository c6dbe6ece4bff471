import { isSpoken } from "./speakable-text.ts";

/** The first piece is at least this long, so that it is a phrase and not a single word. */
const minOpeningCharacters = 10;
/** Sentences after the first are joined up to this length: each run of the engine has a fixed cost and ends in a pause. */
const minSegmentCharacters = 60;
const maxWordCharacters = 60;
/** Digits and signs are read as whole words: each takes about as long as this many letters. */
const digitWeight = 4;

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
const abbreviationAtEnd =
  /\b(?:Mrs?|Ms|Dr|Prof|St|Sr|Jr|Rev|Hon|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Rep|Mt|No|vs|[A-Za-z])\.\s*$/u;
const opening = new RegExp(`^.{${minOpeningCharacters - 1},}?[,;:](?=\\s)`, "u");
const clauseAtEnd = /[,;:)]$/u;

/**
 * Cuts a text (of speakableText) into what the engine speaks at a time, lazily: sentences, the first one only up to its
 * first clause mark so that audio comes early, short ones joined, and none heavier than `maxWeight` (letters; see
 * weightOf). Each has something to be spoken; together they say the whole text.
 */
export function* textSegments(text: string, maxWeight: number): Generator<string, void, undefined> {
  let held = "";
  let first = true;
  for (const { segment } of sentences.segment(text)) {
    if (!isSpoken(segment)) continue;
    if (held !== "" && weightOf(held + segment) > maxWeight) {
      yield* bounded(held, maxWeight);
      held = "";
      first = false;
    }
    held += segment;
    if (abbreviationAtEnd.test(held)) continue;
    if (first) {
      const cut = openingOf(held);
      yield* bounded(cut, maxWeight);
      held = held.slice(cut.length);
      first = false;
    } else if (held.length >= minSegmentCharacters) {
      yield* bounded(held, maxWeight);
      held = "";
    }
  }
  yield* bounded(held, maxWeight);
}

/** About how long a text takes to say, in letters. */
export function weightOf(text: string): number {
  let weight = text.length;
  for (const character of text) if (!/[A-Za-z\s.,;:!?'"()-]/u.test(character)) weight += digitWeight - 1;
  return weight;
}

function openingOf(sentence: string): string {
  const cut = opening.exec(sentence)?.[0];
  return cut !== undefined && isSpoken(cut) && isSpoken(sentence.slice(cut.length)) ? cut : sentence;
}

/** The text in pieces of at most `maxWeight`: cut after a clause if one ends in the later half, else between words. */
function* bounded(text: string, maxWeight: number): Generator<string, void, undefined> {
  let words: string[] = [];
  for (const word of shortWords(text, maxWeight)) {
    if (words.length > 0 && weightOf([...words, word].join(" ")) > maxWeight) {
      const clauseEnd = words.findLastIndex((each) => clauseAtEnd.test(each)) + 1;
      const cut = clauseEnd > words.length / 2 ? clauseEnd : words.length;
      yield* spokenOnly(words.slice(0, cut));
      words = words.slice(cut);
    }
    words.push(word);
  }
  yield* spokenOnly(words);
}

function* spokenOnly(words: readonly string[]): Generator<string, void, undefined> {
  const piece = words.join(" ");
  if (isSpoken(piece)) yield piece;
}

function* shortWords(text: string, maxWeight: number): Generator<string, void, undefined> {
  const longest = Math.max(1, Math.min(maxWordCharacters, Math.floor(maxWeight / digitWeight)));
  for (const word of text.split(" ")) {
    for (let at = 0; at < word.length; at += longest) yield word.slice(at, at + longest);
  }
}
