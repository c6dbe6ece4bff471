import type { ReactNode } from "react";

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** Numbers stand at the end, digit below digit. */
  readonly isNumber?: boolean;
}

interface DataTableProps<T> {
  /** What the table lists, for screen readers. */
  readonly caption: string;
  /** The first one names the row. */
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Instead of a table without rows. */
  readonly empty: ReactNode;
}

/** A table that scrolls sideways where it is wider than its place. */
export function DataTable<T>({ caption, columns, rows, keyOf, empty }: DataTableProps<T>) {
  if (rows.length === 0) return empty;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <section className="table-scroll" tabIndex={0} aria-label={caption}>
      <table>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" className={isNumber ? "end" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber }, index) => {
                const className = isNumber ? "end" : undefined;
                return index === 0 ? (
                  <th key={title} scope="row" className={className}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} className={className}>
                    {cell(row)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
