import { type RawBuilder, sql } from "kysely";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";

/**
 * The table of amounts: what a record adds to its cell of the roll-up besides one request, by its column in both, and
 * where an event has it; tokens, and nano-USD. Records, roll-up, its rebuilding and activity are written from it: another
 * amount is a line here, its column in a migration and a field where it is shown.
 */
const sources = {
  prompt_tokens: ({ tokens }) => tokens?.prompt ?? 0n,
  completion_tokens: ({ tokens }) => tokens?.completion ?? 0n,
  reasoning_tokens: ({ tokens }) => tokens?.reasoning ?? 0n,
  /** The part of `prompt_tokens` that came from the provider's cache. */
  cached_tokens: ({ tokens }) => tokens?.cachedPrompt ?? 0n,
  charged_nano_usd: ({ costNanoUsd }) => costNanoUsd,
  /** List price of what the account's own provider keys served. */
  byok_list_nano_usd: ({ byok, listPriceNanoUsd }) => (byok ? listPriceNanoUsd : 0n),
} satisfies Readonly<Record<string, (event: GenerationEvent) => bigint>>;

type AmountName = keyof typeof sources;

/** An amount of each kind. */
export type Amounts = Readonly<Record<AmountName, bigint>>;

/** The columns of amounts. */
export const amountNames = Object.keys(sources) as readonly AmountName[];

/** An amount of each kind, by its name. */
export function eachAmount(amountOf: (name: AmountName) => bigint): Record<AmountName, bigint> {
  const amounts = {} as Record<AmountName, bigint>;
  for (const name of amountNames) amounts[name] = amountOf(name);
  return amounts;
}

/** What an event adds. */
export function amountsOf(event: GenerationEvent): Amounts {
  return eachAmount((name) => sources[name](event));
}

/** A term of SQL for each amount, with commas between; the columns themselves unless given. */
export function amountTerms(
  term: (column: RawBuilder<unknown>, name: AmountName) => RawBuilder<unknown> = (column) => column,
): RawBuilder<unknown> {
  return sql.join(amountNames.map((name) => term(sql.ref(name), name)));
}

/** The amounts of rows as arrays, one behind the other, for `unnest`. */
export function amountArrays(rows: readonly Amounts[]): RawBuilder<unknown> {
  return amountTerms((_, name) => sql`${rows.map((row) => row[name])}::bigint[]`);
}
