/** The address of a versioned path such as "/v1/audio/speech": a base that ends with that version already is fine. */
export function endpointUrl(baseUrl: string, path: string): string {
  const base = baseUrl.replace(/\/+$/, "");
  const version = path.slice(0, path.indexOf("/", 1));
  return base.endsWith(version) ? base + path.slice(version.length) : base + path;
}
