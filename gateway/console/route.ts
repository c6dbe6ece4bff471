import { sendText } from "../http/answer.ts";
import { headerText } from "../http/auth.ts";
import type { Route } from "../http/route.ts";
import type { ConsoleFile, ContentCoding } from "./assets.ts";

/** Nothing runs, is styled by or is called but what this gateway itself serves. */
const securityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const headers = {
  "content-security-policy": securityPolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  vary: "accept-encoding",
};

/** Names with a hash of what is in them never mean anything else. */
const immutable = "public, max-age=31536000, immutable";

/** The page at `/` and what it is made of. */
export function consoleRoutes(files: readonly ConsoleFile[]): readonly Route[] {
  return files.map((file) => {
    const { path, contentType, etag } = file;
    const caching = path === "/" ? "no-cache" : immutable;
    const all = { ...headers, "content-type": contentType, "cache-control": caching, etag };
    return {
      method: "GET",
      path,
      operation: "unrouted",
      access: "open",
      async handle(exchange) {
        const { headers: asked } = exchange.request;
        if (headerText(asked["if-none-match"]) === etag) {
          await sendText(exchange, 304, "", all);
          return;
        }
        const [bytes, coding] = formOf(file, headerText(asked["accept-encoding"]) ?? "");
        await sendText(
          exchange,
          200,
          bytes,
          coding === undefined ? all : { ...all, "content-encoding": coding },
        );
      },
    };
  });
}

/** The smallest form that the client takes. */
function formOf(
  { bytes, compressed }: ConsoleFile,
  accepted: string,
): readonly [Buffer, ContentCoding | undefined] {
  const taken = new Set(
    accepted
      .split(",")
      .filter((item) => !/;\s*q=0(\.0*)?\s*$/.test(item))
      .map((item) => item.split(";")[0]?.trim().toLowerCase()),
  );
  for (const coding of ["br", "gzip"] as const) {
    const form = compressed[coding];
    if (form !== undefined && taken.has(coding)) return [form, coding];
  }
  return [bytes, undefined];
}
