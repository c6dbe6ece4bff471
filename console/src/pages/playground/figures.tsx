import type { ReactNode } from "react";

interface FiguresProps {
  readonly figures: readonly { readonly name: string; readonly value: ReactNode }[];
}

/** What is to be known of a call, each with its name. */
export function Figures({ figures }: FiguresProps) {
  return (
    <dl className="figures">
      {figures.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Some milliseconds, as people tell them. */
export function durationText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
}
