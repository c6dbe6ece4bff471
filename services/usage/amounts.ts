import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type RawBuilder, sql } from "kysely";
import { type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";

/** Upper bounds of the histogram of first bytes, milliseconds, each included; what took longer than the last is counted beyond. */
export const firstByteBoundsMs = [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200] as const;

/** An amount, and where it is found: in an event, and in SQL in a record and what it is listed by. */
interface AmountSource {
  of(event: GenerationEvent): bigint;
  /** Whether the record has it as a column of its name; else `term` tells it. */
  readonly term?: RawBuilder<unknown>;
}

/**
 * The table of amounts: what a record adds to its cells of the roll-ups besides one request, by its column there; tokens,
 * nano-USD and counts. Records, roll-ups, their rebuilding, activity and its series are written from it: another amount is
 * a line here, its column in a migration and a field where it is shown.
 */
const recorded = {
  prompt_tokens: { of: ({ tokens }) => tokens?.prompt ?? 0n },
  completion_tokens: { of: ({ tokens }) => tokens?.completion ?? 0n },
  reasoning_tokens: { of: ({ tokens }) => tokens?.reasoning ?? 0n },
  /** The part of `prompt_tokens` that came from the provider's cache. */
  cached_tokens: { of: ({ tokens }) => tokens?.cachedPrompt ?? 0n },
  charged_nano_usd: { of: ({ costNanoUsd }) => costNanoUsd },
  /** List price of what the account's own provider keys served. */
  byok_list_nano_usd: { of: ({ byok, listPriceNanoUsd }) => (byok ? listPriceNanoUsd : 0n) },
} satisfies Readonly<Record<string, AmountSource>>;

/** Those that are counted by what a record is listed by, of which it has no column. */
const counted = {
  /** What failed or was lost; that a caller left is no error. */
  errors: {
    of: ({ outcome }) => (outcome === Outcome.FAILED || outcome === Outcome.LOST ? 1n : 0n),
    term: sql`(listing.outcome IN (${sql.lit(Outcome.FAILED)}, ${sql.lit(Outcome.LOST)}))::int`,
  },
  first_byte_100: firstByteWithin(0),
  first_byte_200: firstByteWithin(1),
  first_byte_400: firstByteWithin(2),
  first_byte_800: firstByteWithin(3),
  first_byte_1600: firstByteWithin(4),
  first_byte_3200: firstByteWithin(5),
  first_byte_6400: firstByteWithin(6),
  first_byte_12800: firstByteWithin(7),
  first_byte_25600: firstByteWithin(8),
  first_byte_51200: firstByteWithin(9),
  first_byte_beyond: firstByteWithin(10),
} satisfies Readonly<Record<string, AmountSource>>;

/** The bucket that ends with the bound of that place. */
function firstByteWithin(place: number): AmountSource {
  const above = firstByteBoundsMs[place - 1] ?? -1;
  const most = firstByteBoundsMs[place] ?? 2 ** 31 - 1;
  return {
    of(event) {
      const ms = firstByteMsOf(event);
      return ms !== null && ms > above && ms <= most ? 1n : 0n;
    },
    term: sql`(listing.first_byte_ms > ${sql.lit(above)} AND listing.first_byte_ms <= ${sql.lit(most)})::int`,
  };
}

/** From the beginning of a generation to its first usable output, whole milliseconds; null when there was none. */
export function firstByteMsOf({ startedAt, firstByteAt }: GenerationEvent): number | null {
  if (startedAt === undefined || firstByteAt === undefined) return null;
  // Clocks may jump, and its column is of 32 bits.
  return Math.min(Math.max(0, Math.round(timestampMs(firstByteAt) - timestampMs(startedAt))), 2 ** 31 - 1);
}

const sources: Readonly<Record<AmountName, AmountSource>> = { ...recorded, ...counted };

type RecordedName = keyof typeof recorded;
type AmountName = RecordedName | keyof typeof counted;

/** An amount of each kind. */
export type Amounts = Readonly<Record<AmountName, bigint>>;

/** Those that a record has columns of. */
export type RecordedAmounts = Readonly<Record<RecordedName, bigint>>;

/** The columns of amounts. */
export const amountNames = Object.keys(sources) as readonly AmountName[];

/** Those of them that a record has, too. */
export const recordedNames = Object.keys(recorded) as readonly RecordedName[];

/** The columns of the histogram of first bytes, in the order of its bounds and what lies beyond. */
export const firstByteNames = amountNames.filter((name) => name.startsWith("first_byte_"));

/** An amount of each kind, by its name. */
export function eachAmount<N extends AmountName = AmountName>(
  amountOf: (name: N) => bigint,
  names = amountNames as readonly N[],
): Record<N, bigint> {
  const amounts = {} as Record<N, bigint>;
  for (const name of names) amounts[name] = amountOf(name);
  return amounts;
}

/** What an event adds. */
export function amountsOf(event: GenerationEvent): Amounts {
  return eachAmount((name) => sources[name].of(event));
}

/** A term of SQL for each amount, with commas between; the columns themselves unless given. */
export function amountTerms(
  term: (column: RawBuilder<unknown>, name: AmountName) => RawBuilder<unknown> = (column) => column,
  names: readonly AmountName[] = amountNames,
): RawBuilder<unknown> {
  return sql.join(names.map((name) => term(sql.ref(name), name)));
}

/** What a record adds, of the tables `record` and `listing`, as SQL. */
export function amountOfRecord(name: AmountName): RawBuilder<unknown> {
  return sources[name].term ?? sql.ref(`record.${name}`);
}

/** The amounts of rows as arrays, one behind the other, for `unnest`. */
export function amountArrays<N extends AmountName>(
  rows: readonly Readonly<Record<N, bigint>>[],
  names: readonly N[],
): RawBuilder<unknown> {
  return sql.join(names.map((name) => sql`${rows.map((row) => row[name])}::bigint[]`));
}
