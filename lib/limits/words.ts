/** The words of a table of values by their words. */
export function wordsOf<W extends string>(table: Readonly<Record<W, unknown>>): W[] {
  return Object.keys(table) as W[];
}

/** The word of a value; undefined when it has none. */
export function wordOf<W extends string>(table: Readonly<Record<W, unknown>>, value: unknown): W | undefined {
  return wordsOf(table).find((word) => table[word] === value);
}
