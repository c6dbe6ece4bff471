/** The services that answer RPCs; each is the audience of the tokens sent to it. */
export const audiences = ["speech", "image", "account", "usage", "destination"] as const;

/** A service that answers RPCs, as the `aud` of a service token. */
export type Audience = (typeof audiences)[number];

/** Who signs tokens: every process with a key of its own, and the operator's commands. */
export const issuers = ["gateway", ...audiences, "operator"] as const;

/** Who signed a token, as its `iss`. */
export type Issuer = (typeof issuers)[number];

/** Whether a text names an issuer. */
export function isIssuer(text: unknown): text is Issuer {
  return issuers.some((issuer) => issuer === text);
}
