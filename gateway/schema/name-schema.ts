/** Blanks beyond control characters. */
const blank = String.raw` \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`;
const control = String.raw`\u0000-\u001f\u007f-\u009f`;

/** A text with something to see and no control character; no text makes it go back more than once. */
const visibleText = `[${blank}]*[^${blank}${control}][^${control}]*`;

/** Names for people: what every service refuses otherwise. */
export const namePattern = `^${visibleText}$`;

/** The same, or nothing. */
export const optionalNamePattern = `^(${visibleText})?$`;

/** What to say of a name that is none. */
export const nameWords = "must not be blank and must not contain control characters";
