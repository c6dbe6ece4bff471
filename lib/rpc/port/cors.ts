import { cors } from "@connectrpc/connect";
import { requestIdHeader } from "../request-context.ts";
import type { NodeRequest, NodeResponse } from "./port-listener.ts";

const allowedHeaders = [...cors.allowedHeaders, "Authorization", requestIdHeader].join(", ");
const exposedHeaders = [...cors.exposedHeaders, requestIdHeader].join(", ");
const preflightMaxAgeS = "7200";

/**
 * CORS for Connect and gRPC-Web: marks answers for pages of the listed origins and answers their preflights.
 * Returns true when the request was a preflight and is answered.
 */
export function answerPreflight(
  origins: readonly string[],
  request: NodeRequest,
  response: NodeResponse,
): boolean {
  const origin = request.headers.origin;
  if (origin === undefined || origins.length === 0) return false;
  response.setHeader("vary", "Origin");
  if (!origins.includes(origin)) return false;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", exposedHeaders);
  if (request.method !== "OPTIONS") return false;
  response.setHeader("access-control-allow-methods", cors.allowedMethods.join(", "));
  response.setHeader("access-control-allow-headers", allowedHeaders);
  response.setHeader("access-control-max-age", preflightMaxAgeS);
  response.statusCode = 204;
  response.end();
  return true;
}
