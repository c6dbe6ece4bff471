import type { OutboundResponse } from "./outbound-fetch.ts";

/** The parts of an answer that reading to its end takes. */
export type ReadableAnswer = Pick<OutboundResponse, "cancel"> & { readonly body: AsyncIterable<Uint8Array> };

interface ReadBodyLimits {
  /** What lies beyond is not read. */
  readonly maxBytes: number;
  /** Reading stops here with what has come. */
  readonly timeoutMs: number;
}

/** The start of a body as UTF-8 text. Never throws: a body that breaks, stalls or runs long is given up where it stands. */
export async function readBodyText(answer: ReadableAnswer, limits: ReadBodyLimits): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const timer = setTimeout(() => answer.cancel(), limits.timeoutMs);
  try {
    for await (const chunk of answer.body) {
      chunks.push(chunk.subarray(0, limits.maxBytes - bytes));
      bytes += chunk.length;
      if (bytes >= limits.maxBytes) break;
    }
  } catch {
    // What has come is all there is.
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Reads what is left of an answer whose content is known to be whole, so that its connection can be used again; gives it
 * up after `timeoutMs`. Never throws.
 */
export async function drainBody(
  rest: AsyncIterator<unknown>,
  cancel: () => void,
  timeoutMs: number,
): Promise<void> {
  const timer = setTimeout(cancel, timeoutMs);
  try {
    while (!(await rest.next()).done);
  } catch {
    // Nothing of it was wanted.
  } finally {
    clearTimeout(timer);
  }
}
