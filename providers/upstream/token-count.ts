/** A count of tokens as an upstream reports it, as it stands: 0 where it is left out, NaN where it is no number. */
export function parseTokenCount(value: unknown): number {
  if (value === undefined || value === null) return 0;
  return typeof value === "number" ? value : Number.NaN;
}

/** A count in a header, as it stands: undefined where there is none, NaN where it is no number. */
export function parseHeaderCount(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  return value.trim() === "" ? Number.NaN : Number(value);
}
