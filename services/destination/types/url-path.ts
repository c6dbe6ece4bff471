/**
 * A base URL with a path behind its own, given in parts. Parts that the base ends in already are not repeated: people
 * paste addresses with and without them.
 */
export function appendPath(base: string, ...parts: readonly `/${string}`[]): string {
  const url = new URL(base);
  const own = url.pathname.replace(/\/+$/, "");
  const present = parts.findLastIndex((_, index) => own.endsWith(parts.slice(0, index + 1).join("")));
  url.pathname = [own, ...parts.slice(present + 1)].join("");
  url.hash = "";
  return url.href;
}
