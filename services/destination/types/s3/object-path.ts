/**
 * Where an object goes in a bucket. A template has these placeholders, in UTC: {prefix} the setting of that name,
 * {date} 2026-01-31, {year} 2026, {month} 01, {day} 31, {hour} 23. Empty parts between slashes are left out.
 */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { toIsoText } from "../event-values.ts";

/** The first placeholder that is none of ours, braces included; undefined when there is none. */
export function unknownPlaceholder(template: string): string | undefined {
  return template.match(/\{[^{}]*\}/g)?.find((placeholder) => !known.test(placeholder));
}

/** Whether it has no part that a URL would resolve away. */
export function isObjectPath(path: string): boolean {
  return path.split("/").every((part) => part !== "." && part !== "..");
}

/** The path of what belongs to an instant, without slashes around it; empty for an empty template. */
export function renderObjectPath(template: string, prefix: string, instant: Timestamp | undefined): string {
  const text = toIsoText(instant);
  const values: Readonly<Record<string, string>> = {
    prefix,
    date: text.slice(0, 10),
    year: text.slice(0, 4),
    month: text.slice(5, 7),
    day: text.slice(8, 10),
    hour: text.slice(11, 13),
  };
  const filled = template.replace(knownAnywhere, (_, name: string) => values[name] ?? "");
  return filled
    .split("/")
    .filter((part) => part !== "")
    .join("/");
}

const known = /^\{(prefix|date|year|month|day|hour)\}$/;
const knownAnywhere = /\{(prefix|date|year|month|day|hour)\}/g;
