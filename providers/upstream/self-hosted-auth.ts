/** The header for an operator's own server: `user:password` is sent as Basic, any other key as Bearer, none not at all. */
export function authorizationOf(apiKey: string): Readonly<Record<string, string>> {
  if (apiKey === "") return {};
  const isBasic = apiKey.includes(":");
  return { authorization: isBasic ? `Basic ${Buffer.from(apiKey).toString("base64")}` : `Bearer ${apiKey}` };
}
