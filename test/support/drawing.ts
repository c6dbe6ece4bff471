import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  type ProviderConnection,
  ProviderError,
} from "../../providers/contract.ts";

/** A call for one image that says as little as possible, with changes. */
export function imageCall(changes: Partial<ImageCall> = {}): ImageCall {
  return {
    upstreamModel: "sd_xl_base_1.0",
    prompt: "A boat.",
    n: 1,
    size: { width: 64, height: 96 },
    quality: "auto",
    background: "auto",
    format: "png",
    compression: undefined,
    seed: undefined,
    references: [],
    stream: false,
    options: {},
    settings: {},
    ...changes,
  };
}

/** Calls of an adapter at one server. */
export function drawingAt(adapter: ImageAdapter, connection: ProviderConnection) {
  const begin = (call: ImageCall, given: Partial<AttemptContext> = {}) =>
    adapter.generate(call, {
      signal: new AbortController().signal,
      connection,
      onSent: () => undefined,
      ...given,
    });
  const draw = async (
    call: ImageCall,
    given: Partial<AttemptContext> = {},
  ): Promise<readonly ImageOutput[]> => await Array.fromAsync((await begin(call, given)).output);
  /** What a call fails with. */
  const failureOf = async (call: ImageCall, given: Partial<AttemptContext> = {}): Promise<ProviderError> => {
    const thrown: unknown = await draw(call, given).catch((error: unknown) => error);
    if (thrown instanceof ProviderError) return thrown;
    throw new Error("no ProviderError", { cause: thrown });
  };
  return { begin, draw, failureOf };
}
