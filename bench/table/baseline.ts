import { readFile, writeFile } from "node:fs/promises";
import { type Form, forms, type Part, type Row, shown } from "./rows.ts";

/** Ratios to the plain proxy, by the key of a part. */
export type Ratios = Readonly<Record<string, Readonly<Partial<Record<Form, number>>>>>;

/** A result that is checked in, to compare later ones with. */
export interface Baseline {
  /** ISO 8601. */
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  /** What was run: a bundle or the sources, in the quick form or the whole. */
  readonly ran: string;
  readonly ratios: Ratios;
}

const file = new URL("../baseline.json", import.meta.url);
/** A ratio may be as many times as large as that of the checked-in result. */
const mostOfBaseline = 1.5;

/** The checked-in result. */
export async function readBaseline(): Promise<Baseline> {
  return JSON.parse(await readFile(file, "utf8")) as Baseline;
}

/** Puts a result in the place of the checked-in one. */
export async function writeBaseline(baseline: Baseline): Promise<void> {
  await writeFile(file, `${JSON.stringify(baseline, undefined, 2)}\n`);
}

/** The ratios of all rows, to three digits. */
export function ratiosOf(rows: readonly Row[]): Ratios {
  return Object.fromEntries(
    rows.flatMap(({ parts }) =>
      parts.map(({ key, values }) => [
        key,
        Object.fromEntries(
          forms.flatMap((form) => {
            const ratio = values[form]?.ratio;
            return ratio === undefined ? [] : [[form, Number(ratio.toPrecision(3))]];
          }),
        ),
      ]),
    ),
  );
}

/** A line for each ratio that is worse by more than half than in the baseline, and for each that is not in it. */
export function worsened(rows: readonly Row[], baseline: Pick<Baseline, "ratios">): readonly string[] {
  return rows
    .flatMap(({ parts }) => parts)
    .flatMap((part) => forms.flatMap((form) => worsenedPart(part, form, baseline.ratios[part.key]?.[form])));
}

function worsenedPart({ key, values, grain }: Part, form: Form, before: number | undefined): string[] {
  const ratio = values[form]?.ratio;
  if (ratio === undefined) return [];
  const what = `${key}, ${form}`;
  if (before === undefined) return [`${what}: ×${shown(ratio)}, and the checked-in result does not say`];
  if (Number.isNaN(ratio)) return [`${what}: was not measured`];
  if (ratio <= before * mostOfBaseline || ratio - before <= grain) return [];
  return [`${what}: ×${shown(ratio)}, and ×${shown(before)} in the checked-in result`];
}
