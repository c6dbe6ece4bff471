/**
 * A secret on its way: the first who asks gets it, and nothing keeps it after that. What sends it may be kept (as a
 * mutation keeps what it was called with), the secret is not.
 */
export function once<T>(value: T): () => T {
  let held: { readonly value: T } | undefined = { value };
  return () => {
    if (held === undefined) throw new Error("it was taken before");
    const { value } = held;
    held = undefined;
    return value;
  };
}
