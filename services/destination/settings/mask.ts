/** Stands in every mask and in no secret: what is sent over HTTP is ASCII. */
const ellipsis = "…";
/** Of a shorter secret nothing is shown. */
const minShownLength = 24;

/** A secret as it is shown. */
export function mask(secret: string): string {
  if (secret.length < minShownLength) return ellipsis;
  return `${secret.slice(0, 3)}${ellipsis}${secret.slice(-4)}`;
}

/** Whether a text is a secret as it is shown. */
export function isMasked(text: string): boolean {
  return text.includes(ellipsis);
}
