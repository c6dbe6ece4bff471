/**
 * A copy of a message, down to every part of it that could be changed by who has it. Bytes are shared: nobody writes to
 * them.
 */
export function ownCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(ownCopy) as T;
  const copy = { ...value };
  // Messages of some schemas have their defaults there.
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype) Object.setPrototypeOf(copy, prototype);
  for (const name in copy) {
    const part = copy[name];
    if (typeof part === "object") copy[name] = ownCopy(part);
  }
  return copy;
}
