import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageAnswer,
  type ImageCall,
  type ImageOutput,
  ProviderError,
} from "./contract.ts";
import { describeImageProvider, type ImageProviderSetup } from "./image-provider.suite.ts";

const heads = {
  png: "\x89PNG\r\n\x1a\n",
  jpeg: "\xff\xd8\xff",
  webp: "RIFF\0\0\0\0WEBP",
  svg: "<svg/>",
} as const;

/** An engine whose images are the head of their format and the seed, two previews before each, a turn apart. */
class StampEngine implements ImageAdapter {
  readonly #runs = new Set<object>();

  get running(): number {
    return this.#runs.size;
  }

  async generate(call: ImageCall, { signal, connection, onSent }: AttemptContext): Promise<ImageAnswer> {
    if (connection.apiKey !== "right")
      throw new ProviderError("credentials", "the key is refused", { status: 401 });
    throwIfGone(signal);
    onSent();
    return { output: this.#stamp(call, signal), report: () => ({ tokens: { prompt: 1, completion: 2 } }) };
  }

  async *#stamp(call: ImageCall, signal: AbortSignal): AsyncGenerator<ImageOutput> {
    throwIfGone(signal);
    const run = {};
    const end = () => this.#runs.delete(run);
    this.#runs.add(run);
    signal.addEventListener("abort", end, { once: true });
    const bytes = Buffer.from(`${heads[call.format]}${call.seed}`, "latin1");
    const mediaType = call.format === "svg" ? "image/svg+xml" : `image/${call.format}`;
    try {
      let index = 0;
      for (let image = 0; image < call.n; image++) {
        for (let preview = 0; preview < (call.stream ? 2 : 0); preview++) {
          await nextTurn();
          throwIfGone(signal);
          yield { kind: "partial", index: index++, bytes, mediaType };
        }
        await nextTurn();
        throwIfGone(signal);
        yield { kind: "image", bytes, mediaType };
      }
    } finally {
      signal.removeEventListener("abort", end);
      end();
    }
  }
}

function throwIfGone(signal: AbortSignal): void {
  if (signal.aborted) throw new ProviderError("network", "the call was ended");
}

const call: ImageCall = {
  upstreamModel: "stamp",
  prompt: "A stamp.",
  n: 1,
  size: undefined,
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};
const connection = { baseUrl: "", apiKey: "right" };

describeImageProvider("an engine of this test", (): ImageProviderSetup => {
  const adapter = new StampEngine();
  return {
    adapter,
    connection,
    call,
    formats: ["png", "jpeg", "webp", "svg"],
    severalCall: { ...call, n: 3 },
    streamCall: { ...call, stream: true },
    deterministic: true,
    running: () => adapter.running,
  };
}, [
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: () => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
]);
