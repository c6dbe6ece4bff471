import { medianOf } from "../load.ts";
import { type WorkloadName, workloadNames } from "../workloads.ts";
import type { Figures, Round, TargetFigures } from "./measure.ts";

/** The two forms in which the gateway runs. */
export type Form = "processes" | "standalone";

/** Both of them, in the order of the table. */
export const forms = ["processes", "standalone"] as const;

/** What a form came to. */
export interface Value {
  /** In the unit of the row. */
  readonly figure: number;
  /** As a multiple of the plain proxy beside it. */
  readonly ratio: number;
  /** What is shown; figure and ratio unless given. */
  readonly text?: string;
}

/** One figure of the table. */
export interface Part {
  /** Its name in the checked-in result. */
  readonly key: string;
  readonly plain: number | undefined;
  readonly values: Readonly<Partial<Record<Form, Value>>>;
  readonly aims: Readonly<Partial<Record<Form, string>>>;
  /** What measuring can't tell apart, as a ratio. */
  readonly grain: number;
}

/** A line of the table, of figures that belong together. */
export interface Row {
  readonly label: string;
  /** Stands between them. */
  readonly separator: string;
  readonly parts: readonly Part[];
}

/** Milliseconds of a first byte, and of idle CPU a second, that a machine's other work may come to. */
const latencyGrainMs = 1;
const idleGrainMs = 2;
/** What a broker whose code is not yet compiled takes of a request besides. */
const storesGrainMs = 1;

/** The rows of what was measured, in the order of the table. */
export function rowsOf(figures: Figures): readonly Row[] {
  const row = (label: string, separator: string, ...parts: (Part | undefined)[]): Row[] => {
    const known = parts.filter((part) => part !== undefined);
    return known.length === 0 ? [] : [{ label, separator, parts: known }];
  };
  return [
    ...row(
      "speech burst (20 × 4 KiB at once, 16 in flight), CPU ms",
      "",
      cpuPart(figures, "burst", "×8", "×4"),
    ),
    ...row("speech paced (a chunk each 10 ms, 64 in flight)", "", cpuPart(figures, "paced", "×4.5", "×2.5")),
    ...row("one at a time, burst", "", cpuPart(figures, "one", "×12", "×5")),
    ...row("first byte behind proxy and commit, p50, ms", "", firstBytePart(figures)),
    ...row("image of 1 MiB, 8 in flight", "", cpuPart(figures, "image", "×4.5", "×3")),
    ...row("memory idle / peak under load, MiB", " / ", ...memoryParts(figures)),
    ...row("PostgreSQL + Kafka CPU a request, burst, ms", "", storesPart(figures)),
    ...row("idle CPU, ms a second (each; + PostgreSQL)", " + ", ...idleParts(figures)),
  ];
}

/** CPU of a load, beside that of the plain proxy in the same round. */
function cpuPart(
  figures: Figures,
  name: WorkloadName,
  processes: string,
  standalone: string,
): Part | undefined {
  const plain = figures.plain.rounds[name]?.map(({ cpuMs }) => cpuMs);
  if (plain === undefined) return undefined;
  const aims = { processes, standalone };
  const values = eachForm((form) =>
    beside(
      roundsOf(figures[form], name, ({ cpuMs }) => cpuMs),
      plain,
    ),
  );
  return { key: `${name} CPU`, plain: medianOf(plain), values, aims, grain: 0 };
}

function firstBytePart(figures: Figures): Part | undefined {
  const plain = figures.plain.rounds.one?.map(({ p50Ms }) => p50Ms);
  if (plain === undefined) return undefined;
  const values = eachForm((form) => {
    const behind = roundsOf(figures[form], "one", ({ p50Ms }) => p50Ms).map(
      (p50Ms, round) => p50Ms - (plain[round] ?? 0) - (figures.commitMs[round] ?? 0),
    );
    return beside(behind, plain);
  });
  const aims = { processes: "3", standalone: "1.5" };
  return { key: "first byte", plain: undefined, values, aims, grain: latencyGrainMs / medianOf(plain) };
}

function memoryParts(figures: Figures): readonly Part[] {
  const part = (key: "idleMib" | "peakMib", processes: string, standalone: string): Part[] => {
    const plain = figures.plain[key];
    // The most of some loads alone is not the most.
    if (key === "peakMib" && workloadNames.some((name) => figures.plain.rounds[name] === undefined))
      return [];
    const values = eachForm((form) => beside([figures[form][key]], [plain]));
    return [{ key, plain, values, aims: { processes, standalone }, grain: 0 }];
  };
  return [...part("idleMib", "420", "180"), ...part("peakMib", "650", "320")];
}

function storesPart(figures: Figures): Part | undefined {
  const plain = figures.plain.rounds.burst?.map(({ cpuMs }) => cpuMs);
  if (plain === undefined) return undefined;
  const values = eachForm((form) =>
    beside(
      roundsOf(figures[form], "burst", ({ storesMs }) => storesMs),
      plain,
    ),
  );
  const aims = { processes: "1.0", standalone: "0.8" };
  return { key: "stores CPU", plain: undefined, values, aims, grain: storesGrainMs / medianOf(plain) };
}

/** Idle CPU has nothing beside it: a request of the plain proxy tells how fast the machine is. */
function idleParts(figures: Figures): readonly Part[] {
  const yardstickMs = medianOf(figures.plain.rounds.burst?.map(({ cpuMs }) => cpuMs) ?? []);
  if (figures.plain.idle.length === 0) return [];
  const value = (ms: readonly number[]): Value => {
    const [least, most] = [Math.min(...ms), Math.max(...ms)];
    const text = ms.length === 1 ? shown(most) : `${shown(least)}–${shown(most)}`;
    return { figure: most, ratio: most / yardstickMs, text };
  };
  const ours = ({ idle }: TargetFigures) => idle.filter(({ isOurs }) => isOurs).map(({ cpuMs }) => cpuMs);
  const database = figures.standalone.idle.find(({ isOurs }) => !isOurs)?.cpuMs;
  const grain = idleGrainMs / yardstickMs;
  return [
    {
      key: "idle CPU",
      plain: Math.max(...ours(figures.plain)),
      values: eachForm((form) => value(ours(figures[form]))),
      aims: { processes: "≤3", standalone: "≤5" },
      grain,
    },
    {
      key: "idle CPU of PostgreSQL",
      plain: undefined,
      values: database === undefined ? {} : { standalone: value([database]) },
      aims: { standalone: "2" },
      grain,
    },
  ];
}

function eachForm(measured: (form: Form) => Value): Readonly<Record<Form, Value>> {
  return { processes: measured("processes"), standalone: measured("standalone") };
}

function roundsOf(
  { rounds }: TargetFigures,
  name: WorkloadName,
  figureOf: (round: Round) => number,
): readonly number[] {
  return rounds[name]?.map(figureOf) ?? [];
}

/** The median, and the median of what each round was of the plain proxy's figure in it. */
function beside(figures: readonly number[], plain: readonly number[]): Value {
  const ratios = figures.map((figure, round) => figure / (plain[round] ?? Number.NaN));
  return { figure: medianOf(figures), ratio: medianOf(ratios) };
}

/** A figure with as many places as it is worth. */
export function shown(figure: number): string {
  return figure.toFixed(Math.abs(figure) < 10 ? (Math.abs(figure) < 1 ? 2 : 1) : 0);
}

/** The table as text. */
export function printed(rows: readonly Row[]): string {
  const header = ["", "plain", "processes", "aim", "standalone", "aim"];
  const lines = rows.map(({ label, separator, parts }) => {
    const join = (texts: readonly (string | undefined)[]) =>
      texts.filter((text) => text !== undefined).join(separator);
    const cell = (form: Form) => join(parts.map(({ values }) => values[form] && cellOf(values[form])));
    const aim = (form: Form) => join(parts.map(({ aims }) => aims[form]));
    const plain = join(parts.map((part) => (part.plain === undefined ? undefined : shown(part.plain))));
    return [label, plain, ...forms.flatMap((form) => [cell(form), aim(form)])];
  });
  const widths = header.map((_, column) =>
    Math.max(...[header, ...lines].map((line) => line[column]?.length ?? 0)),
  );
  return [header, ...lines]
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function cellOf({ figure, ratio, text }: Value): string {
  return text ?? `${shown(figure)} (×${shown(ratio)})`;
}
