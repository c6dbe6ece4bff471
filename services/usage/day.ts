const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** The UTC day of an instant, `YYYY-MM-DD`; the instant is Unix milliseconds within the years 1970 to 9999. */
export function dayOfMs(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** When the UTC hour of an instant begins, RFC 3339. */
export function hourOfMs(ms: number): string {
  return new Date(Math.floor(ms / hourMs) * hourMs).toISOString();
}

/** When a day begins, Unix milliseconds. */
export function startOfDayMs(day: string): number {
  return Date.parse(`${day}T00:00:00Z`);
}

/** The day so many days after another, or before it. */
export function addDays(day: string, days: number): string {
  return dayOfMs(startOfDayMs(day) + days * dayMs);
}

/** How many days after 1970-01-01 the UTC day of an instant is. */
export function dayNumberOfMs(ms: number): number {
  return Math.floor(ms / dayMs);
}

/** How many days after 1970-01-01 a day is. */
export function dayNumber(day: string): number {
  return dayNumberOfMs(startOfDayMs(day));
}

/** Whether a text is a day of the calendar between 1970 and 9999, written `YYYY-MM-DD`. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const ms = startOfDayMs(text);
  return ms >= 0 && dayOfMs(ms) === text;
}
