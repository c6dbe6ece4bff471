/**
 * Addresses between their owners and the store. Many a receiver is told who sends by a token in the query of its address,
 * so that values of a query are shown masked.
 */
import { isMasked, mask } from "./mask.ts";

/** An http address with a query; what stands behind `#` is no part of it. */
const addressPattern = /^(https?:\/\/[^?#]*)\?([^#]*)(#.*)?$/is;

/** A part of a query: `name=value`, or a value alone. */
interface QueryPart {
  readonly name: string;
  readonly value: string;
}

/** A text as it is shown: values in the query of an address are masked, everything else is as it was. */
export function maskUrl(text: string): string {
  return mapQuery(text, ({ value }) => (value === "" ? "" : mask(value)));
}

/** Whether a text is an address with a masked value in its query. */
export function isMaskedUrl(text: string): boolean {
  return queryOf(text).some(({ value }) => isMasked(value));
}

/**
 * An address whose masked values are those that stand under the same names in the query of the stored one, in their
 * order; undefined when there is none for one of them.
 */
export function unmaskUrl(text: string, stored: string): string | undefined {
  const known = Map.groupBy(queryOf(stored), ({ name }) => name);
  const counts = new Map<string, number>();
  let isWhole = true;
  const unmasked = mapQuery(text, ({ name, value }) => {
    const index = counts.get(name) ?? 0;
    counts.set(name, index + 1);
    if (!isMasked(value)) return value;
    const before = known.get(name)?.[index]?.value;
    if (before === undefined) isWhole = false;
    return before ?? "";
  });
  return isWhole ? unmasked : undefined;
}

function queryOf(text: string): readonly QueryPart[] {
  const query = addressPattern.exec(text)?.[2];
  return query === undefined ? [] : query.split("&").map(toPart);
}

function toPart(text: string): QueryPart {
  const end = text.indexOf("=") + 1;
  return { name: text.slice(0, end), value: text.slice(end) };
}

function mapQuery(text: string, textOf: (part: QueryPart) => string): string {
  return text.replace(addressPattern, (_, address: string, query: string, rest = "") => {
    const parts = query
      .split("&")
      .map(toPart)
      .map((part) => `${part.name}${textOf(part)}`);
    return `${address}?${parts.join("&")}${rest}`;
  });
}
