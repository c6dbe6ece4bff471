/** A count of tokens as an upstream reports it; 0 for whatever is none. */
export function parseTokenCount(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
