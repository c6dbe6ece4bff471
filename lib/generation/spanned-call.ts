import { type CallOptions, createContextValues } from "@connectrpc/connect";
import { DomainError } from "../runtime/domain-error.ts";
import { wordOfReason } from "../runtime/error-code.ts";
import { otherSpansKey, type Span, spanKey } from "../runtime/span.ts";

/** Something that is due, and the span of waiting for it. */
export interface Spanned<T> {
  readonly item: T;
  readonly span: Span;
}

/** Waits for what is done about an item, in a span of its own within `parent`. */
export async function spanned<T, R>(
  name: string,
  item: T,
  parent: Span,
  call: (due: Spanned<T>) => Promise<R>,
): Promise<R> {
  const span = parent.child(name, "internal");
  if (!span.recording) return call({ item, span });
  try {
    const result = await call({ item, span });
    span.end();
    return result;
  } catch (thrown) {
    span.end(wordOfReason(DomainError.from(thrown).reason));
    throw thrown;
  }
}

/** How a call is made for several items at once: within the span of the first that is recorded, linked to the others. */
export function callFor(due: readonly Spanned<unknown>[]): Pick<CallOptions, "contextValues"> {
  const [first, ...others] = due.map(({ span }) => span).filter(({ recording }) => recording);
  if (first === undefined) return {};
  return { contextValues: createContextValues().set(spanKey, first).set(otherSpansKey, others) };
}
