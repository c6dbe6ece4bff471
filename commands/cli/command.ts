import type { Cli } from "./connect.ts";
import { wrongUsage } from "./failure.ts";
import type { Output } from "./output.ts";

/** An option of a verb: `--name <value>`, or a switch when it has no `value`. */
export interface CommandOption {
  readonly name: string;
  /** What stands for the value in help, such as `id`; none for a switch. */
  readonly value?: string;
  readonly help: string;
}

/** What can be done with a noun. */
export interface Verb {
  readonly name: string;
  readonly summary: string;
  /** What stands without `--`, by name. Where fewer are given than there are, the first ones are left out. */
  readonly positionals?: readonly string[];
  /** Those of them that may be left out. */
  readonly optional?: readonly string[];
  readonly options?: readonly CommandOption[];
  /** What else help has to say. */
  readonly details?: string;
  run(input: Input, cli: Cli): Promise<Output>;
}

/** What commands are about. */
export interface Noun {
  readonly name: string;
  /** Another word for it. */
  readonly alias?: string;
  readonly summary: string;
  /** One without a name is the noun itself. */
  readonly verbs: readonly Verb[];
}

/** The option that names the account. */
export const accountOption: CommandOption = {
  name: "account",
  value: "id",
  help: "which account; may be left out where there is one",
};

/** What a verb was called with, by the names of its positionals and options. */
export class Input {
  readonly #values: Readonly<Record<string, string | boolean | undefined>>;

  constructor(values: Readonly<Record<string, string | boolean | undefined>>) {
    this.#values = values;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  /** Throws CommandFailure where it is missing. */
  required(name: string): string {
    const text = this.text(name);
    if (text === undefined) throw wrongUsage(`--${name} is required; --help tells more`);
    return text;
  }

  /** A whole number from 1 to `max`. Throws CommandFailure. */
  count(name: string, max: number, otherwise?: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return otherwise;
    const count = Number(text);
    if (!/^\d{1,9}$/.test(text) || count < 1 || count > max) {
      throw wrongUsage(`--${name} must be a whole number from 1 to ${max}`);
    }
    return count;
  }

  /** Throws CommandFailure. */
  instant(name: string): Date | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const instant = new Date(text);
    if (Number.isNaN(instant.getTime())) {
      throw wrongUsage(`--${name} must be an instant such as 2026-01-31 or 2026-01-31T12:00:00Z`);
    }
    return instant;
  }

  /** What a word stands for. Throws CommandFailure where it is none of the words. */
  word<V>(name: string, words: Readonly<Record<string, V>>): V | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : meaning(name, words, text);
  }

  /** What each of a list of words stands for, commas between them. Throws CommandFailure. */
  words<V>(name: string, words: Readonly<Record<string, V>>): readonly V[] {
    const texts = (this.text(name) ?? "").split(",").map((text) => text.trim());
    return texts.filter((text) => text !== "").map((text) => meaning(name, words, text));
  }
}

function meaning<V>(name: string, words: Readonly<Record<string, V>>, text: string): V {
  const value = Object.hasOwn(words, text) ? words[text] : undefined;
  if (value === undefined) throw wrongUsage(`--${name} takes ${Object.keys(words).join(", ")}, not ${text}`);
  return value;
}

/** How long a call may take that goes through everything, milliseconds. */
export const longCallTimeoutMs = 600_000;
