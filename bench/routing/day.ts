/** What befalls the vendors on a simulated day: drawn once from a seed, the same for everybody who asks them. */

/** What goes wrong with a call. */
export type Trouble =
  /** No connection: nothing was sent. */
  | "unreachable"
  | "failing"
  | "overloaded"
  /** Takes the call and says nothing more. */
  | "silent"
  /** Breaks off after its first audio. */
  | "breaking";

const troubles: readonly Trouble[] = ["unreachable", "failing", "overloaded", "silent", "breaking"];

interface Period {
  readonly fromMs: number;
  readonly untilMs: number;
}

interface Outage extends Period {
  readonly trouble: Trouble;
  /** Of all calls. */
  readonly share: number;
}

interface Slowdown extends Period {
  readonly factor: number;
}

interface PriceChange {
  readonly fromMs: number;
  readonly nanoUsdPerCharacter: bigint;
}

/** One vendor's day. */
export interface Vendor {
  readonly slug: string;
  /** Median time to its first audio. */
  readonly medianMs: number;
  readonly outages: readonly Outage[];
  readonly slowdowns: readonly Slowdown[];
  /** Oldest first; the first from the beginning. */
  readonly prices: readonly PriceChange[];
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** What fails on a good day. */
const usualShare = 0.002;

/** Draws the day of three vendors: a cheap one that is often away, and dearer ones that are less so. */
export function drawVendors(random: () => number, durationMs: number): readonly Vendor[] {
  const draw = { random, durationMs };
  return [
    drawVendor(draw, { slug: "cheap", medianMs: 450, nanoUsd: 9_000, outagesAnHour: 0.4 }),
    drawVendor(draw, { slug: "usual", medianMs: 350, nanoUsd: 15_000, outagesAnHour: 0.2 }),
    drawVendor(draw, { slug: "dear", medianMs: 250, nanoUsd: 24_000, outagesAnHour: 0.15 }),
  ];
}

interface Draw {
  readonly random: () => number;
  readonly durationMs: number;
}

interface VendorKind {
  readonly slug: string;
  readonly medianMs: number;
  readonly nanoUsd: number;
  readonly outagesAnHour: number;
}

function drawVendor({ random, durationMs }: Draw, kind: VendorKind): Vendor {
  const { slug, medianMs, nanoUsd, outagesAnHour } = kind;
  const hours = durationMs / hourMs;
  const periods = (anHour: number, longestMs: number): readonly Period[] =>
    Array.from({ length: Math.ceil(hours * anHour) }, () => {
      const fromMs = random() * durationMs;
      return { fromMs, untilMs: fromMs + minuteMs + random() ** 2 * longestMs };
    });
  const price = (fromMs: number, factor: number): PriceChange => ({
    fromMs,
    nanoUsdPerCharacter: BigInt(Math.round(nanoUsd * factor)),
  });
  return {
    slug,
    medianMs,
    outages: periods(outagesAnHour, 40 * minuteMs).map((period) => ({
      ...period,
      trouble: troubles[Math.floor(random() * troubles.length)] ?? "failing",
      share: random() < 0.5 ? 1 : 0.2 + 0.6 * random(),
    })),
    slowdowns: periods(0.2, 60 * minuteMs).map((period) => ({ ...period, factor: 3 + 12 * random() })),
    prices: [
      price(0, 1),
      price(durationMs * 0.3 * (0.5 + random()), 0.6 + 0.8 * random()),
      price(durationMs * 0.7 * (0.8 + 0.4 * random()), 0.6 + 0.8 * random()),
    ],
  };
}

/** What a vendor takes for a character now, nano-USD. */
export function priceAt({ prices }: Vendor, atMs: number): bigint {
  return prices.findLast(({ fromMs }) => fromMs <= atMs)?.nanoUsdPerCharacter ?? 0n;
}

/** What becomes of a call that a vendor gets now. */
export interface Fate {
  readonly trouble: Trouble | undefined;
  readonly firstAudioMs: number;
}

/** Draws it; the same draws at the same time are the same fate. */
export function fateAt({ outages, slowdowns, medianMs }: Vendor, atMs: number, random: () => number): Fate {
  const isNow = ({ fromMs, untilMs }: Period) => fromMs <= atMs && atMs < untilMs;
  const [chance, usual, pace] = [random(), random(), random()];
  const outage = outages.filter(isNow).find(({ share }) => chance < share);
  const factor = Math.max(1, ...slowdowns.filter(isNow).map((slowdown) => slowdown.factor));
  // Half of the answers within the median, one in a hundred at four times that.
  const spread = 2 ** (Math.log10((1 - pace) / 0.5) * -1.18);
  return {
    trouble: outage?.trouble ?? (usual < usualShare ? "failing" : undefined),
    firstAudioMs: medianMs * factor * Math.min(spread, 8),
  };
}
