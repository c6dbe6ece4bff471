/**
 * Addresses between their owners and the store. Many a receiver knows who sends by a token in the path or the query of
 * its address, so values of a query are shown masked, and parts of a path that are no plain words.
 */

/** An http address: its origin, its path, its query, and what stands behind `#`, which is no part of it. */
const addressPattern = /^(https?:\/\/[^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/is;
/** Parts of paths that disclose nothing: words and versions, such as `api`, `dead-letters`, `v1.2`. */
const plainPart = /^(?:[a-z]{1,16}(?:[-_.][a-z]{1,16}){0,3}|v\d{1,2}(?:\.\d{1,2})?)?$/;

interface Address {
  readonly origin: string;
  /** The parts of its path, the first of them empty. */
  readonly path: readonly string[];
  readonly query: readonly QueryPart[] | undefined;
  readonly rest: string;
}

/** A part of a query: `name=value`, or a value alone. */
interface QueryPart {
  readonly name: string;
  readonly value: string;
}

/** A text as it is shown: what may be a token in an address is masked, everything else is as it was. */
export function maskUrl(text: string): string {
  const address = readAddress(text);
  if (address === undefined) return text;
  const path = address.path.map(maskPart);
  const query = address.query?.map((part) => ({ ...part, value: maskOnce(part.value) }));
  return writeAddress({ ...address, path, query });
}

/** Whether a text is an address with something masked in its path or its query. */
export function isMaskedUrl(text: string): boolean {
  const { path = [], query = [] } = readAddress(text) ?? {};
  return path.some(isMasked) || query.some(({ value }) => isMasked(value));
}

/**
 * An address whose masked parts are those of the stored one: of its path those that stand at the same place and look
 * so, of its query those under the same names, in their order. Undefined when there is none for one of them.
 */
export function unmaskUrl(text: string, stored: string): string | undefined {
  if (!isMaskedUrl(text)) return text;
  const [address, known] = [readAddress(text), readAddress(stored)];
  if (address === undefined || known === undefined) return undefined;
  const path = address.path.map((part, index) => {
    const before = known.path[index];
    if (!isMasked(part)) return part;
    return before !== undefined && maskPart(before) === part ? before : undefined;
  });
  const query = unmaskQuery(address.query ?? [], known.query ?? []);
  if (!isWhole(path) || !isWhole(query)) return undefined;
  return writeAddress({ ...address, path, query: address.query && query });
}

function unmaskQuery(query: readonly QueryPart[], stored: readonly QueryPart[]) {
  const known = Map.groupBy(stored, ({ name }) => name);
  const counts = new Map<string, number>();
  return query.map((part) => {
    const index = counts.get(part.name) ?? 0;
    counts.set(part.name, index + 1);
    return isMasked(part.value) ? known.get(part.name)?.[index] : part;
  });
}

function isWhole<T>(parts: readonly (T | undefined)[]): parts is readonly T[] {
  return parts.every((part) => part !== undefined);
}

function maskPart(part: string): string {
  return plainPart.test(part) ? part : maskOnce(part);
}

function maskOnce(value: string): string {
  return value === "" || isMasked(value) ? value : mask(value);
}

function readAddress(text: string): Address | undefined {
  const [, origin, path = "", query, rest = ""] = addressPattern.exec(text) ?? [];
  if (origin === undefined) return undefined;
  return { origin, path: path.split("/"), query: query?.split("&").map(toQueryPart), rest };
}

function toQueryPart(text: string): QueryPart {
  const end = text.indexOf("=") + 1;
  return { name: text.slice(0, end), value: text.slice(end) };
}

function writeAddress({ origin, path, query, rest }: Address): string {
  const written =
    query === undefined ? "" : `?${query.map(({ name, value }) => `${name}${value}`).join("&")}`;
  return `${origin}${path.join("/")}${written}${rest}`;
}

/** Stands in every mask and in no secret: what is sent over HTTP is ASCII. */
const ellipsis = "…";
/** Of a shorter secret nothing is shown. */
const minShownLength = 24;

/** A secret as it is shown. */
export function mask(secret: string): string {
  if (secret.length < minShownLength) return ellipsis;
  return `${secret.slice(0, 3)}${ellipsis}${secret.slice(-4)}`;
}

/** Whether a text is a secret as it is shown. */
export function isMasked(text: string): boolean {
  return text.includes(ellipsis);
}
