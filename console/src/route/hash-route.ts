import { useMemo, useSyncExternalStore } from "react";

/** Where the reader is: `#/requests/gen-1?model=a` is page `requests`, rest `["gen-1"]` and its query. */
export interface HashRoute {
  /** The page's name; empty for the first page. */
  readonly page: string;
  /** The parts of the path behind it, decoded. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
}

/** Reads what stands behind `#` in an address. */
export function parseHash(hash: string): HashRoute {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").map(decoded);
  return { page, rest, query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page, to be put into `href`. Values that are empty are left out of the query. */
export function hrefOf(
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = new URLSearchParams(set).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search === "" ? "" : `?${search}`}`;
}

/** Goes to an address made by `hrefOf`; `replace` leaves no step to go back to, as for a filter that is being typed. */
export function go(href: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Where the reader is, followed. */
export function useHashRoute(): HashRoute {
  const hash = useSyncExternalStore(followHash, () => location.hash);
  return useMemo(() => parseHash(hash), [hash]);
}

function followHash(onChange: () => void): () => void {
  addEventListener("hashchange", onChange);
  return () => removeEventListener("hashchange", onChange);
}
