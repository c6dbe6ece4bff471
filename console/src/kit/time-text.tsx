const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const short = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

/** An instant (ISO 8601) in the reader's own time; the exact one, with its zone, on hovering. */
export function TimeText({ at }: { at: string }) {
  const date = new Date(at);
  return (
    <time
      dateTime={date.toISOString()}
      title={`${full.format(date)} (${date.toISOString()})`}
      className="number"
    >
      {short.format(date)}
    </time>
  );
}
