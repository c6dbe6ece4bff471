/** How the OpenAI stand-in answers one valid request. */

/** Speaks. */
export interface AudioBehaviour {
  kind: "audio";
  /** Length of the audio; 20 × 4 KiB by default. */
  totalBytes?: number;
  /** 4 KiB by default. */
  chunkBytes?: number;
  /** Pause before every chunk but the first; none by default. For benchmarks: tests use gates. */
  intervalMs?: number;
  /** Transfer-Encoding chunked, the default, or a Content-Length. */
  framing?: "chunked" | "length";
  /** In place of the right one. */
  contentType?: string;
  /** In place of the vendor's own, or besides them; undefined leaves one out. */
  headers?: Readonly<Record<string, string | undefined>>;
  /** The headers wait for it. */
  beforeHeaders?: () => Promise<void>;
  /** Each chunk waits for it; chunks count from 0. */
  beforeChunk?: (index: number) => Promise<void> | undefined;
  /** The end of the answer waits for it; everything else is out by then. */
  beforeEnd?: () => Promise<void>;
  /** Falls silent after so many bytes of audio, the connection stays open. */
  stallAfterBytes?: number;
  /** Breaks the connection after so many bytes of audio. */
  cutAfterBytes?: number;
  /** Whether it breaks by FIN, the default, or by RST. */
  cutWith?: "close" | "reset";
  /** Server-sent events only: ends cleanly but without the last event. */
  omitDone?: boolean;
  /** Server-sent events only: an error event after so many bytes, then the end. */
  errorAfterBytes?: number;
  /** Server-sent events only: what the last event reports; null leaves it out. */
  usage?: object | null;
}

/** Refuses, as the vendor does with this status. */
export interface ErrorBehaviour {
  kind: "error";
  status: number;
  /** In place of the usual code of the status. */
  code?: string | null;
  type?: string;
  message?: string;
  headers?: Record<string, string>;
}

/** Answers with exactly this: wrong answers. */
export interface PlainBehaviour {
  kind: "plain";
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Any of them. */
export type SpeechBehaviour = AudioBehaviour | ErrorBehaviour | PlainBehaviour;

/**
 * Behaviour written into the text to speak, for tests and benchmarks that reach the stand-in through other processes:
 * `[[audio=65536 chunk=4096 interval=10]]`, `[[stall=8192]]`, `[[cut=8192 framing=length]]`, `[[status=429 retry-after=2]]`.
 */
export function behaviourOfMarker(input: string): SpeechBehaviour | undefined {
  const marker = readMarker(input);
  if (marker === undefined) return undefined;
  const { settings, count, refusal } = marker;
  if (refusal !== undefined) return refusal;
  const numbers = {
    totalBytes: count("audio"),
    chunkBytes: count("chunk"),
    intervalMs: count("interval"),
    stallAfterBytes: count("stall"),
    cutAfterBytes: count("cut"),
  };
  const given = Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
  return { kind: "audio", framing: settings.get("framing") === "length" ? "length" : "chunked", ...given };
}

/** What stands between the double brackets of a text. */
export interface Marker {
  readonly settings: ReadonlyMap<string, string>;
  /** A setting as a number. */
  count(name: string): number | undefined;
  /** What `status` and `retry-after` ask for. */
  readonly refusal: ErrorBehaviour | undefined;
}

/** The first marker in a text. */
export function readMarker(text: string): Marker | undefined {
  const marker = /\[\[([a-z0-9_=\s-]+)\]\]/.exec(text)?.[1];
  if (marker === undefined) return undefined;
  const pairs = marker.trim().split(/\s+/);
  const settings = new Map(pairs.map((pair) => pair.split("=", 2) as [string, string]));
  const count = (name: string) => (settings.has(name) ? Number(settings.get(name)) : undefined);
  const status = count("status");
  const code = settings.get("code");
  const retryAfter = settings.get("retry-after");
  const refusal: ErrorBehaviour | undefined =
    status === undefined
      ? undefined
      : {
          kind: "error",
          status,
          ...(code !== undefined && { code }),
          ...(retryAfter !== undefined && { headers: { "retry-after": retryAfter } }),
        };
  return { settings, count, refusal };
}
