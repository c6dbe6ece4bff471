/** A column of a CSV file. */
export interface CsvColumn<T> {
  readonly title: string;
  readonly value: (row: T) => string | number | boolean | null;
}

// What people wrote and spreadsheets would take for a formula.
const formula = /^[=+\-@\t\r]/;

/** Rows as CSV (RFC 4180), its first line the titles. No text in it is a formula to a spreadsheet. */
export function csvOf<T>(columns: readonly CsvColumn<T>[], rows: readonly T[]): string {
  const lines = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map(({ value }) => fieldOf(value(row)))),
  ];
  return lines.map((fields) => `${fields.map(quoted).join(",")}\r\n`).join("");
}

function fieldOf(value: string | number | boolean | null): string {
  if (typeof value !== "string") return value === null ? "" : String(value);
  return formula.test(value) && !/^-?[\d.]+$/.test(value) ? `'${value}` : value;
}

function quoted(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
