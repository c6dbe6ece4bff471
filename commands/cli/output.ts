import { formatUsd } from "../../lib/money/nano-usd.ts";

/** An amount; it is printed exactly. */
export interface Amount {
  readonly nanoUsd: bigint;
}

/** What may stand in a field; undefined is nothing. */
export type Value = string | number | bigint | boolean | Date | Amount | readonly string[] | undefined;

/** A thing with its fields, by names such as `created_at` that are both JSON's and, as words, the heading's. */
export type Fields = Readonly<Record<string, Value>>;

/** What a verb has to say. `notes` are for people, on stderr; `isWrong` makes the exit code 1. */
export type Output = (
  | { readonly columns: readonly string[]; readonly rows: readonly Fields[] }
  | { readonly fields: Fields }
  /** Shown this once, alone on stdout, so that a shell can keep it. */
  | { readonly secret: string; readonly fields: Fields }
  /** A report in its own words. */
  | { readonly lines: readonly string[]; readonly data: unknown }
) & { readonly notes?: readonly string[]; readonly isWrong?: boolean };

/** Nano-USD as an amount. */
export function usd(nanoUsd: bigint): Amount {
  return { nanoUsd };
}

/** An amount as people read it: `$12.50`, `-$0.000000001`. */
export function dollars(nanoUsd: bigint): string {
  const [whole = "", fraction = ""] = formatUsd(nanoUsd < 0n ? -nanoUsd : nanoUsd).split(".");
  return `${nanoUsd < 0n ? "-" : ""}$${whole}.${fraction.padEnd(2, "0")}`;
}

/** Where a command line is given. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
  /** All that there is on stdin. */
  read(): Promise<string>;
}

/** Prints what a verb has to say, as a table or as JSON. */
export function print(output: Output, asJson: boolean, terminal: Terminal): void {
  const text = asJson ? toJson(output) : toText(output);
  if (text !== "") terminal.out(`${text}\n`);
  for (const note of output.notes ?? []) terminal.error(`${printable(note)}\n`);
}

function toText(output: Output): string {
  if ("lines" in output) return output.lines.map(printableLine).join("\n");
  if ("secret" in output) return output.secret;
  if ("fields" in output) {
    const present = Object.entries(output.fields).filter(([, value]) => value !== undefined);
    return aligned(present.map(([name, value]) => [wordsOf(name), cell(value)]));
  }
  const head = output.columns.map((name) => wordsOf(name).toUpperCase());
  return aligned([head, ...output.rows.map((row) => output.columns.map((name) => cell(row[name])))]);
}

function toJson(output: Output): string {
  const plain = (fields: Fields) => Object.fromEntries(Object.entries(fields).map(jsonField));
  let value: unknown;
  if ("lines" in output) value = output.data;
  else if ("secret" in output) value = { secret: output.secret, ...plain(output.fields) };
  else if ("fields" in output) value = plain(output.fields);
  else {
    value = output.rows.map((row) =>
      plain(Object.fromEntries(output.columns.map((name) => [name, row[name]]))),
    );
  }
  const text = JSON.stringify(value, (_, part) => (typeof part === "bigint" ? Number(part) : part), 2);
  // JSON lets stand what a terminal would act on.
  return text.replace(/[^\P{C}\n]|[\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, at) => unitEscape(character.charCodeAt(at))).join(""),
  );
}

/** Amounts of money are texts, since a number could not be exact. */
function jsonField([name, value]: [string, Value]): [string, unknown] {
  if (value === undefined) return [name, null];
  if (isAmount(value)) return [name, formatUsd(value.nanoUsd)];
  return [name, value];
}

function isAmount(value: Value): value is Amount {
  return typeof value === "object" && "nanoUsd" in value;
}

function cell(value: Value): string {
  if (value === undefined || value === "") return "-";
  if (isAmount(value)) return dollars(value.nanoUsd);
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return value.length === 0 ? "-" : printable(value.join(", "));
  return printable(String(value));
}

/** `created_at` is `created at`, `balance_usd` is `balance`: that it is money shows. */
function wordsOf(name: string): string {
  return name.replace(/_usd$/, "").replaceAll("_", " ");
}

/** A text without what a terminal would act on or hide: controls, escapes, marks of direction. */
export function printable(text: string): string {
  return text.replace(
    /[\p{C}\u2028\u2029]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** Tabs divide what a report says. */
function printableLine(line: string): string {
  return line.split("\t").map(printable).join("\t");
}

function unitEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}

/** Rows as lines, each column as wide as its widest cell. */
function aligned(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, text] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, [...text].length);
  }
  const pad = (text: string, at: number) => text + " ".repeat((widths[at] ?? 0) - [...text].length);
  return rows.map((row) => row.map(pad).join("  ").trimEnd()).join("\n");
}
