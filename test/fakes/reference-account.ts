/** What money-flow says about one account, written down as plainly as can be: what the database is compared with. */

/** A request as a schedule knows it; amounts in nano-USD. */
export interface ReferenceRequest {
  readonly id: string;
  readonly key: number;
  readonly amount: bigint;
  readonly cost: bigint;
}

/** A key: its limit a day, if it has one. */
export interface ReferenceKey {
  readonly dailyLimit: bigint | undefined;
}

interface Hold {
  state: "open" | "settled" | "lost" | "released" | "refused";
  refusal?: "credits" | "key_limit" | "too_late";
  readonly day: number;
  /** False where it was released before anybody reserved. */
  readonly wasOpen: boolean;
  seen: boolean;
}

/** One account with its keys and holds. Days are counted up by `nextDay`. */
export class ReferenceAccount {
  readonly holds = new Map<string, Hold>();
  today = 0;
  readonly #credit: bigint;
  readonly #keys: readonly ReferenceKey[];
  readonly #requests: readonly ReferenceRequest[];

  constructor(credit: bigint, keys: readonly ReferenceKey[], requests: readonly ReferenceRequest[]) {
    this.#credit = credit;
    this.#keys = keys;
    this.#requests = requests;
  }

  get charged(): bigint {
    return this.#sum(({ cost }, { state }) => (state === "settled" ? cost : 0n));
  }

  get held(): bigint {
    return this.#sum(({ amount }, { state }) => (state === "open" ? amount : 0n));
  }

  /** What the holds of a key take and have cost, by the day they were held on, days without any left out. */
  daysOf(key: number): { day: number; held: bigint; spent: bigint }[] {
    return Array.from({ length: this.today + 1 }, (_, day) => ({
      day,
      held: this.#sum((request, hold) =>
        request.key === key && hold.day === day && hold.state === "open" ? request.amount : 0n,
      ),
      spent: this.#sum((request, hold) =>
        request.key === key && hold.day === day && hold.state === "settled" ? request.cost : 0n,
      ),
    })).filter(({ held, spent }) => held > 0n || spent > 0n);
  }

  reserve({ id, key, amount }: ReferenceRequest, isLate: boolean): string {
    const known = this.holds.get(id);
    if (known !== undefined) return known.state === "open" ? "granted" : (known.refusal ?? "closed");
    const { held = 0n, spent = 0n } = this.daysOf(key).find(({ day }) => day === this.today) ?? {};
    const { dailyLimit } = this.#keys[key] as ReferenceKey;
    const hold: Hold = { state: "open", day: this.today, wasOpen: true, seen: false };
    if (isLate) hold.refusal = "too_late";
    else if (dailyLimit !== undefined && held + spent + amount > dailyLimit) hold.refusal = "key_limit";
    else if (this.#credit - this.charged - this.held < amount) hold.refusal = "credits";
    if (hold.refusal !== undefined) hold.state = "refused";
    this.holds.set(id, hold);
    return hold.refusal ?? "granted";
  }

  release({ id }: ReferenceRequest): void {
    const hold = this.holds.get(id);
    const unknown: Hold = { state: "released", day: this.today, wasOpen: false, seen: false };
    if (hold === undefined) this.holds.set(id, unknown);
    else if (hold.state === "open") hold.state = "released";
  }

  real({ id }: ReferenceRequest, consumed: boolean): string {
    const hold = this.holds.get(id);
    if (hold === undefined) return "unknown";
    if (hold.state === "released" || hold.state === "refused") return "closed";
    if (hold.state === "settled") hold.seen ||= consumed;
    else Object.assign(hold, { state: "settled", seen: consumed });
    return "stored";
  }

  lost({ id }: ReferenceRequest): string {
    const hold = this.holds.get(id);
    const isLost = hold?.state === "open" || (hold?.state === "released" && hold.wasOpen);
    if (hold !== undefined && isLost) Object.assign(hold, { state: "lost", seen: true });
    return hold === undefined ? "unknown" : "stored";
  }

  #sum(part: (request: ReferenceRequest, hold: Hold) => bigint): bigint {
    return this.#requests.reduce((sum, request) => {
      const hold = this.holds.get(request.id);
      return hold === undefined ? sum : sum + part(request, hold);
    }, 0n);
  }
}
