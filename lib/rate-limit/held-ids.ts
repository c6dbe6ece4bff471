/** Names of requests that are in flight; one counts once, however many hold it. */
export class HeldIds {
  readonly #holders = new Map<string, number>();

  get size(): number {
    return this.#holders.size;
  }

  has(id: string): boolean {
    return this.#holders.has(id);
  }

  /** One more holds it, who lets go of it once. */
  hold(id: string): void {
    this.#holders.set(id, (this.#holders.get(id) ?? 0) + 1);
  }

  letGo(id: string): void {
    const left = (this.#holders.get(id) ?? 0) - 1;
    if (left > 0) this.#holders.set(id, left);
    else this.#holders.delete(id);
  }
}
