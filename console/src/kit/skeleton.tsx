/** Lines in the place of what is being loaded. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className="skeleton-lines" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same.
        <span key={line} className="skeleton" />
      ))}
    </div>
  );
}
