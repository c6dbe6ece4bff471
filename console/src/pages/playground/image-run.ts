import type { components } from "../../../gen/openapi.ts";
import { type Api, answerOf } from "../../api/api.ts";
import { ApiFailure } from "../../api/api-failure.ts";
import { imageBlob } from "../../kit/image-blob.ts";
import { type Unheeded, unheededOf } from "./ignored-notice.tsx";
import { piecesOf } from "./speech-run.ts";

/** The body of a call. */
export type ImagesRequest = components["schemas"]["ImagesRequest"];
type ImageEvent = components["schemas"]["ImageEvent"];
type ImagesAnswer = components["schemas"]["ImagesAnswer"];

/** What has come of a call so far. */
export interface ImageRun {
  readonly state: "running" | "done" | "cancelled" | "failed";
  readonly request: ImagesRequest;
  readonly images: readonly Blob[];
  /** How the next image looks by now. */
  readonly preview?: Blob | undefined;
  readonly previews: number;
  readonly text: string;
  readonly firstImageMs?: number;
  readonly generationId?: string;
  readonly unheeded: Unheeded;
  readonly failure?: unknown;
}

/** Calls, and tells each step; ends early, as cancelled, when the signal says so. Never rejects. */
export async function runImages(
  api: Api,
  request: ImagesRequest,
  signal: AbortSignal,
  tell: (run: ImageRun) => void,
): Promise<void> {
  const startedMs = performance.now();
  let run: ImageRun = {
    state: "running",
    request,
    images: [],
    previews: 0,
    text: "",
    unheeded: { parameters: [], words: [] },
  };
  const change = (more: Partial<ImageRun>) => {
    const firstImageMs = run.firstImageMs ?? performance.now() - startedMs;
    run = { ...run, ...more };
    if (run.previews + run.images.length > 0) run = { ...run, firstImageMs };
    tell(run);
  };
  change({});
  try {
    const call = api.POST("/images", { body: request, parseAs: "stream", signal });
    const stream = await answerOf(call);
    const { response } = await call;
    const generationId = response.headers.get("x-generation-id") ?? "";
    change({ unheeded: unheededOf(response), generationId });
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      for await (const event of eventsOf(piecesOf(stream, response)))
        change(afterEvent(run, event, response));
    } else {
      change({ images: await wholeOf(piecesOf(stream, response)) });
    }
    change({ state: "done", preview: undefined });
  } catch (thrown) {
    if (signal.aborted) change({ state: "cancelled", preview: undefined });
    else change({ state: "failed", failure: thrown, preview: undefined });
  }
}

function afterEvent(run: ImageRun, event: ImageEvent, response: Response): Partial<ImageRun> {
  switch (event.type) {
    case "image_generation.partial_image": {
      const preview = imageBlob({ b64_json: event.b64_json, media_type: sniffed(event.b64_json) });
      return { preview, previews: run.previews + 1 };
    }
    case "image_generation.text_chunk":
      return event.phase === "content" ? { text: run.text + event.text } : {};
    case "image_generation.completed":
      return { images: [...run.images, imageBlob(event)], preview: undefined };
    default:
      throw new ApiFailure(event, response);
  }
}

/** Previews do not say what they are; only of an SVG, which browsers don't recognise by themselves, it must be said. */
function sniffed(base64: string): string {
  return /^\s*</.test(atob(base64.slice(0, 64))) ? "image/svg+xml" : "image/png";
}

type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>;

async function wholeOf(pieces: Pieces): Promise<readonly Blob[]> {
  const all = [];
  for await (const piece of pieces) all.push(piece);
  const { data }: ImagesAnswer = JSON.parse(await new Blob(all).text());
  return data.map(imageBlob);
}

/** The events of a stream, each of which is one `data:` line of JSON. */
export async function* eventsOf(pieces: Pieces): AsyncGenerator<ImageEvent> {
  const decoder = new TextDecoder();
  let begun: string[] = [];
  for await (const piece of pieces) {
    const lines = decoder.decode(piece, { stream: true }).split("\n");
    const [first = "", ...others] = lines;
    begun.push(first);
    for (const next of others) {
      const line = begun.join("").trim();
      begun = [next];
      if (line.startsWith("data:") && !line.endsWith("[DONE]")) yield JSON.parse(line.slice("data:".length));
    }
  }
}
