import type { Lch } from "../color/color.ts";
import { colorModifiers, colorWords } from "./color-words.ts";
import {
  boundaries,
  counts,
  cutFlowers,
  holders,
  impliedBy,
  links,
  mostKinds,
  mostOfOne,
  mounts,
  negations,
  pluralCount,
  reach,
  silentWords,
  singulars,
  tokensOf,
  unchanging,
} from "./prompt-words.ts";
import type { SubjectName } from "./subject-words.ts";
import {
  longestPhrase,
  lookUp,
  type Meaning,
  type Mood,
  type Place,
  type Season,
  type SkySight,
  type Time,
  type Weather,
} from "./vocabulary.ts";

/** Something that the prompt names, how often, and the colours that go with it. */
export interface Subject {
  readonly name: SubjectName;
  count: number;
  readonly colors: Lch[];
  /** A plural without a number: as many as the scene has room for. */
  many: boolean;
  /** What it rides or stands on. */
  carrier: SubjectName | undefined;
}

/** What a prompt says, as far as it is understood; everything in the order of the prompt. */
export interface Reading {
  time: Time | undefined;
  season: Season | undefined;
  readonly weather: Set<Weather>;
  /** With the colours that go with each. */
  readonly sky: Map<SkySight, Lch[]>;
  readonly places: Map<Place, Lch[]>;
  readonly subjects: Subject[];
  readonly moods: Set<Mood>;
  /** Colours that belong to nothing in particular. */
  readonly colors: Lch[];
  /** The words that were passed over though they may mean something to see, each once. */
  readonly unrecognized: readonly string[];
}

/** Reads an English prompt. Never throws; what is not understood is passed over. */
export function readPrompt(prompt: string): Reading {
  return new PromptReader(tokensOf(prompt)).read();
}

class PromptReader {
  readonly #tokens: readonly string[];
  readonly #unrecognized = new Set<string>();
  readonly #reading: Omit<Reading, "unrecognized"> = {
    time: undefined,
    season: undefined,
    weather: new Set(),
    sky: new Map(),
    places: new Map(),
    subjects: [],
    moods: new Set(),
    colors: [],
  };
  #at = 0;
  /** Colours that wait for their noun, and how many words ago the last of them was. */
  #pending: Lch[] = [];
  #distance = 0;
  /** The noun before the comma before them: theirs if no other comes, as in "a balloon, red and white, over hills". */
  #owner: Lch[] | undefined;
  #count: number | undefined;
  #negated = false;
  /** The noun before, while a link such as "is" may still bring it a colour. */
  #last: Lch[] | undefined;
  #linked = false;
  /** The subject before a word like "riding". */
  #rider: Subject | undefined;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  read(): Reading {
    while (this.#at < this.#tokens.length) this.#step();
    this.#letGo();
    this.#arrangeCompany();
    return { ...this.#reading, unrecognized: [...this.#unrecognized] };
  }

  #step(): void {
    const token = this.#tokens[this.#at] ?? "";
    const phrase = this.#phrase();
    const color = this.#isFruit(token) ? undefined : this.#color(token);
    if (phrase !== undefined && (phrase.length > 1 || color === undefined)) {
      const plural = phrase.plural || (unchanging.has(token) && !this.#isSingular());
      const words = this.#tokens.slice(this.#at, this.#at + phrase.length).join("-");
      this.#at += phrase.length;
      if (this.#pending.length === 0) this.#pending.push(...impliedBy(words));
      this.#meet(phrase.meaning, plural);
      return;
    }
    this.#at++;
    if (color !== undefined) this.#meetColor(color);
    else this.#pass(token);
  }

  #phrase(): { meaning: Meaning; plural: boolean; length: number } | undefined {
    for (let length = longestPhrase; length >= 1; length--) {
      const words = this.#tokens.slice(this.#at, this.#at + length);
      if (words.length < length) continue;
      const found = lookUp(words.join("-"));
      if (found !== undefined) return { ...found, length };
    }
    return this.#isFruit(this.#tokens[this.#at] ?? "")
      ? {
          meaning: { kind: "subject", name: "orange" },
          plural: this.#tokens[this.#at] !== "orange",
          length: 1,
        }
      : undefined;
  }

  /** Whether an article stands before the noun, adjectives between them left out. */
  #isSingular(): boolean {
    return this.#tokens.slice(Math.max(0, this.#at - 3), this.#at).some((token) => singulars.has(token));
  }

  /** "an orange on a table" and "two oranges", but not "an orange boat". */
  #isFruit(token: string): boolean {
    if (token === "oranges") return true;
    if (token !== "orange") return false;
    const [before, after] = [this.#tokens[this.#at - 1] ?? "", this.#tokens[this.#at + 1] ?? ","];
    return before === "an" && boundaries.has(after);
  }

  #color(token: string): Lch | undefined {
    const color = Object.hasOwn(colorWords, token) ? colorWords[token] : undefined;
    if (color === undefined) return undefined;
    const before = this.#tokens[this.#at - 1] ?? "";
    const modify = Object.hasOwn(colorModifiers, before) ? colorModifiers[before] : undefined;
    return modify?.(color) ?? color;
  }

  #meetColor(color: Lch): void {
    if (this.#negated) return;
    if (this.#linked && this.#last !== undefined) {
      this.#last.push(color);
      return;
    }
    if (this.#pending.length === 0) {
      this.#owner = this.#tokens[this.#at - 2] === "," ? this.#last : undefined;
    }
    this.#pending.push(color);
    this.#distance = 0;
  }

  #pass(token: string): void {
    if (negations.has(token)) this.#negated = true;
    else if (mounts.has(token)) this.#rider = this.#reading.subjects.at(-1);
    else if (boundaries.has(token)) {
      if (token !== ",") this.#linked = false;
      // "red, green and blue balloons": colours in a list stay together.
      if (token !== "," && token !== "of") this.#letGo();
      if (token !== "of") this.#count = undefined;
      if (token === "," || token === ".") this.#negated = false;
    } else if (links.has(token)) this.#linked = this.#last !== undefined;
    else if (Object.hasOwn(counts, token)) this.#count = counts[token];
    else if (/^\d+$/.test(token)) this.#count = Math.min(mostOfOne, Math.max(1, Number(token)));
    else {
      if (!this.#isSilent(token)) this.#unrecognized.add(token.normalize());
      if (token !== "and" && token !== "or" && ++this.#distance > reach) this.#letGo();
    }
  }

  /** Whether a word has nothing to show, or has changed the colour after it. */
  #isSilent(token: string): boolean {
    if (token.length < 2 && token <= "z") return true;
    if (Object.hasOwn(colorModifiers, token)) {
      return Object.hasOwn(colorWords, this.#tokens[this.#at] ?? "");
    }
    return silentWords.has(token);
  }

  #meet(meaning: Meaning, plural: boolean): void {
    const colors = this.#pending;
    this.#pending = [];
    this.#owner = undefined;
    this.#linked = false;
    const many = plural && this.#count === undefined;
    const count = this.#count ?? (plural ? pluralCount : 1);
    if (meaning.kind !== "mood") this.#count = undefined;
    if (this.#negated) {
      this.#negated = false;
      return;
    }
    switch (meaning.kind) {
      case "mood":
        this.#reading.moods.add(meaning.name);
        this.#pending = colors;
        return;
      case "subject":
        this.#addSubject(meaning.name as SubjectName, count, many, colors);
        return;
      case "place":
        this.#last = joined(this.#reading.places, meaning.name, colors);
        return;
      case "sky":
        this.#last = joined(this.#reading.sky, meaning.name, colors);
        return;
      default:
        this.#meetCondition(meaning, colors);
    }
  }

  /** "an orange sunset" and "a grey storm" colour the sky; "a red autumn" is a matter of the whole picture. */
  #meetCondition(meaning: Meaning & { kind: "time" | "season" | "weather" }, colors: readonly Lch[]): void {
    const { kind, name } = meaning;
    if (kind === "weather") this.#reading.weather.add(name);
    else if (kind === "season") this.#reading.season ??= name;
    else this.#reading.time ??= name;
    if (colors.length === 0) return;
    if (kind === "season") this.#reading.colors.push(...colors);
    else joined(this.#reading.sky, "sky", colors);
  }

  #addSubject(name: SubjectName, count: number, many: boolean, colors: readonly Lch[]): void {
    const known = this.#reading.subjects.find((subject) => subject.name === name);
    if (known === undefined && this.#reading.subjects.length >= mostKinds) return;
    const subject = known ?? { name, count: 0, colors: [], many: false, carrier: undefined };
    if (known === undefined) this.#reading.subjects.push(subject);
    subject.count = Math.min(mostOfOne, known === undefined ? count : Math.max(known.count, count));
    subject.many ||= many;
    subject.colors.push(...colors);
    if (this.#rider !== undefined && this.#rider !== subject) this.#rider.carrier ??= name;
    this.#rider = undefined;
    this.#last = subject.colors;
  }

  /** Flowers "in a vase" are those that the vase is drawn with; an umbrella is held by who is there. */
  #arrangeCompany(): void {
    const { subjects } = this.#reading;
    const umbrella = subjects.find(({ name }) => name === "umbrella");
    const holder = subjects.find(({ name }) => holders.has(name));
    if (umbrella !== undefined && holder !== undefined) umbrella.carrier = holder.name;
    if (!subjects.some(({ name }) => name === "vase")) return;
    const others = subjects.filter(({ name }) => !cutFlowers.has(name));
    subjects.splice(0, subjects.length, ...others);
  }

  #letGo(): void {
    (this.#owner ?? this.#reading.colors).push(...this.#pending);
    this.#owner = undefined;
    this.#pending = [];
    this.#distance = 0;
  }
}

function joined<K>(map: Map<K, Lch[]>, key: K, colors: readonly Lch[]): Lch[] {
  const list = map.get(key) ?? [];
  list.push(...colors);
  map.set(key, list);
  return list;
}
