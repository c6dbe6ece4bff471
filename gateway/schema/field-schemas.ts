import Type, { type TNumberOptions, type TSchemaOptions, type TStringOptions, type TUnsafe } from "typebox";

/** A schema of a text or null, in one type so that faults are reported in one sentence. */
export function nullableString(options: TStringOptions = {}): TUnsafe<string | null> {
  return Type.Unsafe<string | null>({ type: ["string", "null"], ...options });
}

/** A schema of a number or null. */
export function nullableNumber(options: TNumberOptions = {}): TUnsafe<number | null> {
  return Type.Unsafe<number | null>({ type: ["number", "null"], ...options });
}

/** A schema of a whole number or null. */
export function nullableInteger(options: TNumberOptions = {}): TUnsafe<number | null> {
  return Type.Unsafe<number | null>({ type: ["integer", "null"], ...options });
}

/** A schema of some fixed strings or null. */
export function nullableEnum<const T extends string>(
  values: readonly T[],
  options: TSchemaOptions = {},
): TUnsafe<T | null> {
  return Type.Unsafe<T | null>({ ...options, type: ["string", "null"], enum: [...values, null] });
}

/** A schema of some fixed strings that also says that they are strings, for whoever reads the document. */
export function stringEnum<const T extends string>(
  values: readonly T[],
  options: TSchemaOptions = {},
): TUnsafe<T> {
  return Type.Unsafe<T>({ ...options, type: "string", enum: [...values] });
}

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
