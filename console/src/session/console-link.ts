import createClient from "openapi-fetch";
import type { paths } from "../../gen/openapi.ts";
import { answerOf, apiUrl } from "../api/api.ts";

const linkHash = /^#\/link\/([\w-]+)$/;

/**
 * The code of a login link that the page was opened by, which is taken out of the address at once. It stands behind `#`,
 * which no browser sends to anybody.
 */
export function takeLinkCode(): string | undefined {
  const code = linkHash.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, "", "#/");
  return code;
}

/** Exchanges a code for two keys, once. Throws ApiFailure. */
export async function redeemLinkCode(code: string) {
  const client = createClient<paths>({ baseUrl: apiUrl(), cache: "no-store", credentials: "omit" });
  const { data } = await answerOf(client.POST("/console/session", { body: { code } }));
  return data;
}
