import { ProviderError } from "../contract.ts";
import type { ProviderHttp, ProviderHttpRequest, ProviderHttpResponse } from "../provider-http.ts";
import { type Failures, send } from "./send.ts";

/** The header for an operator's own server: `user:password` is sent as Basic, any other key as Bearer, none not at all. */
export function authorizationOf(apiKey: string): Readonly<Record<string, string>> {
  if (apiKey === "") return {};
  const isBasic = apiKey.includes(":");
  return { authorization: isBasic ? `Basic ${Buffer.from(apiKey).toString("base64")}` : `Bearer ${apiKey}` };
}

/**
 * Sends one request to an operator's own server. What is not there is its set-up, which says nothing about the call:
 * another endpoint may do. Throws ProviderError.
 */
export async function sendToOwnServer(
  http: ProviderHttp,
  request: ProviderHttpRequest,
  failures: Failures,
): Promise<ProviderHttpResponse> {
  try {
    return await send(http, request, failures);
  } catch (thrown) {
    if (!(thrown instanceof ProviderError && (thrown.status === 404 || thrown.status === 405))) throw thrown;
    const { message, cause, status } = thrown;
    throw new ProviderError("upstream", message, { status, cause });
  }
}
