import createClient, { type Client, type FetchResponse } from "openapi-fetch";
import type { paths } from "../../gen/openapi.ts";
import type { KeyKind, Session } from "../session/session.ts";
import { ApiFailure, isErrorBody } from "./api-failure.ts";

/** The gateway's interface as its OpenAPI document has it, called with one key. */
export type Api = Client<paths>;

/** Where the interface lies: beside the page, under whatever path of a proxy that is. */
export function apiUrl(): string {
  return new URL("api/v1", document.baseURI).href;
}

/** Refusals after which a key is of no use; `scope_missing` and its like leave it good for other things. */
const keyRefusals: ReadonlySet<string> = new Set([
  "key_missing",
  "key_unknown",
  "key_expired",
  "key_disabled",
]);

/** The interface called with a key of a kind, which the session hears of when it is refused. */
export function createApi(session: Session, kind: KeyKind, secret: string | undefined): Api {
  const client = createClient<paths>({
    baseUrl: apiUrl(),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
  });
  client.use({
    onRequest({ request }) {
      if (secret !== undefined) request.headers.set("authorization", `Bearer ${secret}`);
    },
    async onResponse({ response }) {
      if (response.status !== 401 || secret === undefined) return;
      const body: unknown = await response
        .clone()
        .json()
        .catch(() => undefined);
      const reason = isErrorBody(body) ? body.error.metadata?.reason : undefined;
      if (reason !== undefined && keyRefusals.has(reason)) session.refuse(kind, secret, reason);
    },
  });
  return client;
}

/** The answer of a call. Throws ApiFailure for any that is an error, and for none. */
export async function answerOf<
  T extends Record<string | number, unknown>,
  O,
  M extends `${string}/${string}`,
>(call: Promise<FetchResponse<T, O, M>>): Promise<NonNullable<FetchResponse<T, O, M>["data"]>> {
  const { data, error, response } = await call.catch((thrown: unknown) => {
    throw new ApiFailure(undefined, undefined, { cause: thrown });
  });
  if (data === undefined || data === null) throw new ApiFailure(error, response);
  return data;
}
