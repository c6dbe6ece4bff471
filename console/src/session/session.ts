/** The two kinds of API key. */
export type KeyKind = "inference" | "management";

/** A key of the tab. */
export interface HeldKey {
  readonly secret: string;
  /** Why the gateway accepts it no more, as its `reason`; undefined while it does. */
  readonly refused?: string;
}

/** The keys of the tab by their kind. */
export type HeldKeys = Readonly<Partial<Record<KeyKind, HeldKey>>>;

/** A key as it may be seen by whoever looks over a shoulder. */
export function maskedKey(secret: string): string {
  return `sk-…${secret.slice(-4)}`;
}

const storageName = "media-gateway-keys";
const kinds: readonly KeyKind[] = ["inference", "management"];

/**
 * The keys that this tab calls with. They live as long as the tab does (sessionStorage): no other tab, no later visit and
 * no address has them.
 */
export class Session {
  readonly #storage: Storage;
  readonly #listeners = new Set<() => void>();
  #keys: HeldKeys;

  constructor(storage: Storage) {
    this.#storage = storage;
    this.#keys = readKeys(storage);
  }

  get keys(): HeldKeys {
    return this.#keys;
  }

  /** Takes a key in the place of the one of its kind. */
  hold(kind: KeyKind, secret: string): void {
    this.#change({ ...this.#keys, [kind]: { secret } });
  }

  /** Notes that the gateway accepts a key no more, unless another has taken its place meanwhile. */
  refuse(kind: KeyKind, secret: string, reason: string): void {
    const held = this.#keys[kind];
    if (held?.secret !== secret || held.refused !== undefined) return;
    this.#change({ ...this.#keys, [kind]: { secret, refused: reason } });
  }

  forget(kind: KeyKind): void {
    const { [kind]: _, ...others } = this.#keys;
    this.#change(others);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #change(keys: HeldKeys): void {
    this.#keys = keys;
    const secrets = kinds.flatMap((kind) => (keys[kind] === undefined ? [] : [[kind, keys[kind].secret]]));
    this.#storage.setItem(storageName, JSON.stringify(Object.fromEntries(secrets)));
    for (const listener of this.#listeners) listener();
  }
}

function readKeys(storage: Storage): HeldKeys {
  const stored: unknown = JSON.parse(storage.getItem(storageName) ?? "{}");
  if (typeof stored !== "object" || stored === null) return {};
  const held = kinds.flatMap((kind) => {
    const secret: unknown = Reflect.get(stored, kind);
    return typeof secret === "string" ? [[kind, { secret }]] : [];
  });
  return Object.fromEntries(held);
}
