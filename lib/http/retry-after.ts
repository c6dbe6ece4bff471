/**
 * How long an answer asks to wait, milliseconds: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date
 * (RFC 9110, 10.2.3). Undefined where it asks for nothing that can be understood.
 */
export function parseRetryAfterMs(
  headers: Readonly<Record<string, string>>,
  nowMs: number,
): number | undefined {
  const milliseconds = parseDecimal(headers["retry-after-ms"]);
  if (milliseconds !== undefined) return Math.ceil(milliseconds);
  const text = headers["retry-after"];
  const seconds = parseDecimal(text);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const dateMs = text !== undefined && /^\s*[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

function parseDecimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,12}(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}
