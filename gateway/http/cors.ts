import type { IncomingMessage, ServerResponse } from "node:http";
import { requestIdHeader } from "../../lib/rpc/request-context.ts";

const exposedHeaders = [
  requestIdHeader,
  "x-generation-id",
  "x-ignored-parameters",
  "x-unrecognized-prompt-words",
  "x-audio-sample-rate",
  "x-audio-channels",
  "x-should-retry",
  "retry-after",
].join(", ");
const allowedMethods = "GET, POST, PATCH, DELETE";
const preflightMaxAgeS = "7200";

/**
 * CORS (Fetch standard) for the listed origins: marks the answer for their pages, and answers a preflight, for which
 * it returns true. Any header may be sent, since public clients add their own. Other origins get no CORS headers.
 */
export function answerCors(
  origins: readonly string[],
  { method, headers }: IncomingMessage,
  response: ServerResponse,
): boolean {
  if (origins.length === 0) return false;
  response.setHeader("vary", "Origin");
  const { origin } = headers;
  if (origin === undefined || !origins.includes(origin)) return false;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", exposedHeaders);
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return false;
  const requested = headers["access-control-request-headers"];
  response.setHeader("access-control-allow-methods", allowedMethods);
  response.setHeader("access-control-allow-headers", requested ?? "authorization, content-type");
  response.setHeader("access-control-max-age", preflightMaxAgeS);
  response.writeHead(204).end();
  return true;
}
