/** How the OpenAI stand-in answers one valid request for images. */
import { type ErrorBehaviour, type PlainBehaviour, readMarker } from "./openai-behaviour.ts";

/** Tokens of images as the vendor names them. */
export interface VendorImageUsage {
  input_tokens: number;
  input_tokens_details: { text_tokens: number; image_tokens: number };
  output_tokens: number;
  output_tokens_details?: { text_tokens: number; image_tokens: number };
  total_tokens: number;
}

/** What stands in the place of an image: itself as base64, an address, nothing, letters that are no base64, a text. */
export type ImageContent = "b64_json" | "url" | "nothing" | "noise" | "text";

/** Draws. */
export interface DrawBehaviour {
  kind: "image";
  /** Length of each image and preview, bytes; as long as they come out by default. */
  imageBytes?: number;
  /** Images in the answer; as many as were asked for by default. */
  count?: number;
  /** Previews before each image; as many as were asked for by default. */
  partials?: number;
  /** Previews that come after their image. */
  latePartials?: number;
  content?: ImageContent;
  /** Transfer-Encoding chunked, the default, or a Content-Length; events are always chunked. */
  framing?: "chunked" | "length";
  /** In place of the right one. */
  contentType?: string;
  /** Pause before the headers. For benchmarks: tests use gates. */
  delayMs?: number;
  /** Pause before every event but the first. For benchmarks: tests use gates. */
  intervalMs?: number;
  /** The headers wait for it. */
  beforeHeaders?: () => Promise<void>;
  /** Each event waits for it; events count from 0. */
  beforeEvent?: (index: number) => Promise<void> | undefined;
  /** The end of the answer waits for it; everything else is out by then. */
  beforeEnd?: () => Promise<void>;
  /** Falls silent after so many bytes of the body, the connection stays open. */
  stallAfterBytes?: number;
  /** Breaks the connection after so many bytes of the body. */
  cutAfterBytes?: number;
  /** Whether it breaks by FIN, the default, or by RST. */
  cutWith?: "close" | "reset";
  /** Events only: an error event in place of the one with this number, then the end. */
  errorAtEvent?: number;
  /** Events only: ends cleanly without the images. */
  omitCompleted?: boolean;
  /** What the answer reports; null leaves it out. */
  usage?: VendorImageUsage | null;
}

/** Any of them. */
export type ImageBehaviour = DrawBehaviour | ErrorBehaviour | PlainBehaviour;

const contents: ReadonlySet<string> = new Set(["b64_json", "url", "nothing", "noise", "text"]);

/**
 * Behaviour written into the prompt: `[[image=1048576]]`, `[[partials=0 interval=100]]`, `[[count=2]]`, `[[delay=500]]`,
 * `[[content=url]]`, `[[stall=8192]]`, `[[cut=8192 framing=length]]`, `[[status=400 code=moderation_blocked]]`.
 */
export function imageBehaviourOfMarker(prompt: string): ImageBehaviour | undefined {
  const marker = readMarker(prompt);
  if (marker === undefined) return undefined;
  const { settings, count, refusal } = marker;
  if (refusal !== undefined) return refusal;
  const content = settings.get("content");
  const values = {
    imageBytes: count("image"),
    count: count("count"),
    partials: count("partials"),
    delayMs: count("delay"),
    intervalMs: count("interval"),
    stallAfterBytes: count("stall"),
    cutAfterBytes: count("cut"),
    framing: settings.get("framing") === "length" ? "length" : undefined,
    content: content !== undefined && contents.has(content) ? content : undefined,
  };
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
  return { kind: "image", ...given };
}
