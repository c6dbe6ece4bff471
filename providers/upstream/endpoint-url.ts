import { ProviderError } from "../contract.ts";

/** The address of a versioned path such as "/v1/audio/speech": a base that ends with that version already is fine. */
export function endpointUrl(baseUrl: string, path: string): string {
  const base = baseUrl.replace(/\/+$/, "");
  const version = path.slice(0, path.indexOf("/", 1));
  return base.endsWith(version) ? base + path.slice(version.length) : base + path;
}

/** A value as one segment of a path. Throws ProviderError for the two that a URL takes for a step ("." and ".."). */
export function pathSegment(value: string): string {
  if (value === "" || value === "." || value === "..") {
    throw new ProviderError("invalid_request", "This name can stand in no address.");
  }
  return encodeURIComponent(value);
}
