/** One series of a metric and its value. */
export interface Series {
  /** As it stands in the text, without its value: `name{label="value"}`. */
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The series of a text in Prometheus's format. Throws on a line that is none. */
export function parsePrometheusText(text: string): readonly Series[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseLine);
}

/** GET /metrics of a port on this machine. Throws unless it is answered well. */
export async function scrape(port: number): Promise<readonly Series[]> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(10_000) });
  if (response.status !== 200) throw new Error(`/metrics answers ${response.status}`);
  return parsePrometheusText(await response.text());
}

/** The sum of the series of one name that have these labels; 0 without one. */
export function sumOf(
  series: readonly Series[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = Object.entries(labels);
  return series
    .filter((one) => one.name === name && wanted.every(([label, value]) => one.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

function parseLine(line: string): Series {
  const [, id, name, inside = "", value] =
    /^(([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\.)*",?)*)\})?) (\S+)$/.exec(line) ?? [];
  if (id === undefined || name === undefined) throw new Error(`no series: ${line}`);
  const pairs = [...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
  const labels = Object.fromEntries(pairs.map(([, label = "", text = ""]) => [label, unescaped(text)]));
  return { id, name, labels, value: value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value) };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}
