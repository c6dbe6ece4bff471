import { Meter } from "react-aria-components/Meter";
import { nanoUsdOf } from "../../kit/money.ts";
import { MoneyText } from "../../kit/money-text.tsx";
import type { KeyRecord } from "./key-record.ts";

const periods = { daily: "a day", weekly: "a week", monthly: "a month" } as const;

/** What a key has spent, against its limit where it has one. */
export function LimitMeter({ record }: { record: KeyRecord }) {
  const { name, limit, limit_remaining: remaining, limit_reset: reset, usage } = record;
  if (record.kind === "management") return <span className="soft">nothing</span>;
  const inAll = (
    <span className="soft small">
      <MoneyText usd={usage} /> in all
    </span>
  );
  if (limit === null || remaining === null) {
    return (
      <div className="spent">
        <MoneyText usd={usage} />
        <span className="soft small">no limit</span>
      </div>
    );
  }
  const [most, used] = [nanoUsdOf(limit), nanoUsdOf(limit) - nanoUsdOf(remaining)];
  const percent = most === 0n ? 100 : Number((used * 100n) / most);
  return (
    <div className="spent">
      <span>
        <MoneyText usd={used} /> of <MoneyText usd={limit} />
        {reset === null ? "" : ` ${periods[reset]}`}
      </span>
      <Meter
        className={percent >= 90 ? "meter full" : "meter"}
        aria-label={`Limit of ${name}`}
        value={percent}
      >
        <span style={{ width: `${Math.min(percent, 100)}%` }} />
      </Meter>
      {inAll}
    </div>
  );
}
