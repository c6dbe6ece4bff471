import { stretchesOf, type Timed } from "./timing.ts";
import { durationText } from "./words.ts";

/** The time of a request as a bar: its attempts, and where the first byte left the gateway. In words below. */
export function TimingBar({ generation }: { generation: Timed }) {
  const { latency, first_byte_latency: firstByte } = generation;
  const stretches = stretchesOf(generation);
  if (stretches === undefined || latency === null) {
    return <p className="soft">It was lost: nobody knows how long it took.</p>;
  }
  return (
    <div className="timing">
      <div className="timing-bar" aria-hidden="true">
        {stretches.map(({ startPercent, widthPercent, isGood, label }) => (
          <span
            key={label}
            title={label}
            className={isGood ? "good" : "bad"}
            style={{ insetInlineStart: `${startPercent}%`, width: `max(2px, ${widthPercent}%)` }}
          />
        ))}
        {firstByte !== null && (
          <i style={{ insetInlineStart: `${Math.min((firstByte / Math.max(latency, 1)) * 100, 100)}%` }} />
        )}
      </div>
      <p className="soft small number">
        {firstByte === null ? "No output" : `First byte after ${durationText(firstByte)}`} · the whole took{" "}
        {durationText(latency)}
      </p>
    </div>
  );
}
