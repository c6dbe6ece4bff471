import { Badge } from "./badge.tsx";
import { TimeText } from "./time-text.tsx";

/** How somebody who serves has lately fared, as the interface tells it. */
export interface Health {
  readonly breaker: "closed" | "partly_open" | "open";
  readonly attempts: number;
  readonly error_share: number | null;
  readonly last_error: { readonly kind: string; readonly at: string } | null;
}

/** Whether the breaker lets requests through, and whether those of late went well. */
export function HealthBadge({ health }: { health: Health }) {
  const { breaker, attempts, error_share: share } = health;
  if (breaker === "open") return <Badge tone="bad">Breaker open</Badge>;
  if (breaker === "partly_open") return <Badge tone="warn">Breaker partly open</Badge>;
  if (attempts === 0) return <Badge>Not used lately</Badge>;
  if (share === 1) return <Badge tone="bad">Failing</Badge>;
  return (share ?? 0) > 0 ? <Badge tone="warn">Some errors</Badge> : <Badge tone="good">Healthy</Badge>;
}

const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });

/** Which share of the attempts failed, and of how many; a dash where there were none. */
export function ErrorShareText({ health: { attempts, error_share: share } }: { health: Health }) {
  if (share === null) return <span className="soft">–</span>;
  return (
    <span className="number">
      {percent.format(share)} <span className="soft">of {attempts}</span>
    </span>
  );
}

/** Kind and time of the last error. */
export function LastErrorText({ health: { last_error: last } }: { health: Health }) {
  if (last === null) return <span className="soft">None</span>;
  return (
    <>
      {last.kind.replaceAll("_", " ")}, <TimeText at={last.at} />
    </>
  );
}

/** A span of time that was measured: `87 ms`, `1.3 s`; a dash where none was. */
export function MillisecondsText({ ms }: { ms: number | null }) {
  if (ms === null) return <span className="soft">–</span>;
  return <span className="number">{ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`}</span>;
}
