import Type, { type TSchemaOptions, type TUnsafe } from "typebox";

/** A schema of some fixed strings that also says that they are strings, for whoever reads the document. */
export function stringEnum<const T extends string>(
  values: readonly T[],
  options: TSchemaOptions = {},
): TUnsafe<T> {
  return Type.Unsafe<T>({ ...options, type: "string", enum: [...values] });
}
