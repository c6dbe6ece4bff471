/**
 * What a test file has started or made and not yet ended: all of it is ended when the file is through, whether its tests
 * saw to it or timed out before they could (leave-nothing.ts).
 */
const enders = new Set<() => Promise<void>>();

/** Has something ended at the end of the test file; what it returns says that it has ended by then. */
export function endWithFile(end: () => Promise<void>): () => void {
  enders.add(end);
  return () => void enders.delete(end);
}

/** Ends what is left, the newest first. Rejects with the first failure once all was tried. */
export async function endLeftovers(): Promise<void> {
  const failures: unknown[] = [];
  for (const end of [...enders].toReversed()) {
    enders.delete(end);
    await end().catch((thrown: unknown) => failures.push(thrown));
  }
  if (failures.length > 0) throw failures[0];
}
