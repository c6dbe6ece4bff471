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
