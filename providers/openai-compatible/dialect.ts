import type { ProviderHttp } from "../provider-http.ts";
import { endpointUrl } from "../upstream/endpoint-url.ts";
import { isRecord } from "../upstream/failure.ts";

/** What differs between the upstreams that speak this dialect, whatever is asked of them. */
export interface DialectOptions {
  readonly http: ProviderHttp;
  /** The headers that a key goes in; `Authorization: Bearer` unless given. */
  readonly authorize?: ((apiKey: string) => Readonly<Record<string, string>>) | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  /** Of every endpoint that has no other. */
  readonly settings?: Readonly<Record<string, unknown>> | undefined;
  /** Wall clock, for a Retry-After that names a date. */
  readonly nowMs?: (() => number) | undefined;
}

/** The address of a path, `{model}` in it replaced, with the query that all requests have. */
export function addressOf(
  { query = {} }: DialectOptions,
  baseUrl: string,
  path: string,
  upstreamModel: string,
): string {
  const address = endpointUrl(baseUrl, path.replaceAll("{model}", encodeURIComponent(upstreamModel)));
  const parameters = new URLSearchParams(query).toString();
  return parameters === "" ? address : `${address}?${parameters}`;
}

/** The headers that all requests have, that of the key among them. */
export function headersOf(
  { headers, authorize = bearer }: DialectOptions,
  apiKey: string,
): Readonly<Record<string, string>> {
  return { ...headers, ...authorize(apiKey) };
}

function bearer(apiKey: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${apiKey}` };
}

/** An endpoint's settings above those of all; fixed fields of the body are laid over each other one by one. */
export function settingsOf(
  { settings }: DialectOptions,
  own: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  if (settings === undefined) return own;
  const body = { ...recordOf(settings.body), ...recordOf(own.body) };
  return { ...settings, ...own, body };
}

/** A setting that is an object; empty where it is none. */
export function recordOf(setting: unknown): Readonly<Record<string, unknown>> {
  return isRecord(setting) ? setting : {};
}

/** What is sent: fixed fields under those that this request has something to say of. */
export function overFixedFields(
  settings: Readonly<Record<string, unknown>>,
  said: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const given = Object.entries(said).filter(([, value]) => value !== undefined);
  return { ...recordOf(settings.body), ...Object.fromEntries(given) };
}
