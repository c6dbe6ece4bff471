import { nanoUsdOf } from "../../kit/money.ts";

/** A point of GET /activity/series, as far as it is read here. */
export interface Point {
  readonly starts_at: string;
  readonly group: string | null;
  readonly requests: number;
  readonly errors: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly usage: number;
  readonly byok_usage_inference: number;
  readonly first_byte_counts: readonly number[];
}

/** What several points come to; amounts in nano-USD, exact. */
export interface Totals {
  readonly requests: number;
  readonly errors: number;
  readonly tokens: number;
  readonly nanoUsd: bigint;
  readonly ownKeysNanoUsd: bigint;
  readonly firstByteCounts: readonly number[];
}

/** The sum of points. */
export function totalsOf(points: readonly Point[]): Totals {
  const sum = (value: (point: Point) => number) => points.reduce((total, point) => total + value(point), 0);
  const sumUsd = (value: (point: Point) => number) =>
    points.reduce((total, point) => total + nanoUsdOf(value(point)), 0n);
  const bands = Math.max(0, ...points.map(({ first_byte_counts: counts }) => counts.length));
  return {
    requests: sum(({ requests }) => requests),
    errors: sum(({ errors }) => errors),
    tokens: sum(({ prompt_tokens, completion_tokens }) => prompt_tokens + completion_tokens),
    nanoUsd: sumUsd(({ usage }) => usage),
    ownKeysNanoUsd: sumUsd(({ byok_usage_inference }) => byok_usage_inference),
    firstByteCounts: Array.from({ length: bands }, (_, band) =>
      sum(({ first_byte_counts: counts }) => counts[band] ?? 0),
    ),
  };
}

/** The groups of points with what each comes to, what cost most first. */
export function groupsOf(points: readonly Point[]): { group: string | null; totals: Totals }[] {
  const byGroup = Map.groupBy(points, ({ group }) => group);
  return [...byGroup]
    .map(([group, own]) => ({ group, totals: totalsOf(own) }))
    .sort(
      ({ totals: one }, { totals: other }) =>
        Number(other.nanoUsd - one.nanoUsd) || other.requests - one.requests,
    );
}

/** The least bound within which a share of the first bytes came, in words; undefined where none came. */
export function firstByteWithin(
  counts: readonly number[],
  boundsMs: readonly number[],
  share: number,
): string | undefined {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return undefined;
  let reached = 0;
  for (const [band, boundMs] of boundsMs.entries()) {
    reached += counts[band] ?? 0;
    if (reached >= all * share) return `≤ ${boundText(boundMs)}`;
  }
  return `> ${boundText(boundsMs.at(-1) ?? 0)}`;
}

/** A bound of the histogram: `800 ms`, `3.2 s`. */
export function boundText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`;
}
