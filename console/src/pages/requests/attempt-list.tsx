import { Badge } from "../../kit/badge.tsx";
import { TimeText } from "../../kit/time-text.tsx";
import type { Generation } from "./requests-query.ts";
import { durationText, toneOf } from "./words.ts";

type Attempt = Generation["provider_responses"][number];

/** Every attempt in its order: which endpoint, how it ended and why, how long it took. */
export function AttemptList({ attempts }: { attempts: readonly Attempt[] }) {
  if (attempts.length === 0) return <p className="soft">No provider was called.</p>;
  return (
    <ol className="attempts">
      {attempts.map((attempt, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts keep their order.
        <li key={index}>
          <div className="row">
            <strong>
              {index + 1}. {attempt.provider_name}
            </strong>
            <Badge tone={toneOf(attempt.outcome)}>{attempt.outcome}</Badge>
            {attempt.reason !== null && <code>{attempt.reason}</code>}
            {attempt.status !== null && <span className="soft small">HTTP {attempt.status}</span>}
          </div>
          <p className="soft small">
            {attempt.created_at !== null && (
              <>
                sent <TimeText at={attempt.created_at} />,{" "}
              </>
            )}
            took {durationText(attempt.latency)}
            {attempt.first_byte_latency !== null &&
              `, first output after ${durationText(attempt.first_byte_latency)}`}
            {attempt.is_byok && ", by your own provider key"}
          </p>
          <p className="soft small">
            endpoint <code>{attempt.endpoint_id}</code>
          </p>
        </li>
      ))}
    </ol>
  );
}
