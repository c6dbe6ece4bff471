import { setImmediate as nextTurn } from "node:timers/promises";
import { type AttemptContext, ProviderError, type SpeechAdapter, type SpeechCall } from "./contract.ts";
import { describeSpeechProvider, type SpeechProviderSetup } from "./provider.suite.ts";

/** An engine that speaks two bytes of pcm a character, 64 bytes a chunk, one chunk a turn of the event loop. */
class ToneEngine implements SpeechAdapter {
  producedBytes = 0;
  readonly #runs = new Set<object>();

  get running(): number {
    return this.#runs.size;
  }

  async synthesize(call: SpeechCall, { signal, connection, onSent }: AttemptContext) {
    if (connection.apiKey !== "right")
      throw new ProviderError("credentials", "the key is refused", { status: 401 });
    if (call.input.trim() === "") throw new ProviderError("nothing_to_speak", "nothing to speak");
    throwIfGone(signal);
    onSent();
    return {
      format: call.format === "mp3" ? ("mp3" as const) : ("pcm" as const),
      sampleRateHz: 24_000,
      channels: 1,
      audio: this.#speak(call.input.length * 2, signal),
      report: () => undefined,
    };
  }

  async *#speak(bytes: number, signal: AbortSignal) {
    throwIfGone(signal);
    const run = {};
    const end = () => this.#runs.delete(run);
    this.#runs.add(run);
    signal.addEventListener("abort", end, { once: true });
    try {
      for (let made = 0; made < bytes; made += 64) {
        await nextTurn();
        throwIfGone(signal);
        const chunk = new Uint8Array(Math.min(64, bytes - made));
        this.producedBytes += chunk.length;
        yield chunk;
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

const call: SpeechCall = {
  upstreamModel: "tone",
  input: "A tone is all that this engine has to say, and it says it for as long as the text lasts.",
  voice: "sine",
  format: "pcm",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};
const connection = { baseUrl: "", apiKey: "right" };

describeSpeechProvider("an engine of this test", (): SpeechProviderSetup => {
  const adapter = new ToneEngine();
  return {
    adapter,
    connection,
    call,
    running: () => adapter.running,
    pace: {
      longCall: { ...call, input: call.input.repeat(100) },
      producedBytes: () => adapter.producedBytes,
      maxAheadBytes: 1024,
    },
  };
}, [
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: () => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
  { name: "blanks", kind: "nothing_to_speak", provoke: () => ({ call: { ...call, input: " " } }) },
]);
