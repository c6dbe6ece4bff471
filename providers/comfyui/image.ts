/**
 * ComfyUI's own interface: a graph is queued, its end is awaited, and its images are fetched one by one.
 *
 * - The graph is the operator's; of the call only the words that the endpoint maps are written into it (workflow.ts).
 * - Previews come by a websocket of this call alone (preview-watch.ts). Without previews there is none: the history is
 *   asked until it has the prompt. It tells all that the websocket would, also where that breaks.
 * - Who leaves has the prompt taken out of the queue by its id. What runs already goes on: an interrupt ends whatever the
 *   server is at, which may be another's; and servers that know one by id can't be told from those that don't.
 */
import { randomUUID } from "node:crypto";
import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import {
  type AttemptContext,
  type ImageAdapter,
  type ImageCall,
  type ImageOutput,
  ProviderError,
} from "../contract.ts";
import type { OpenWebSocket, ProviderHttp, ProviderWebSocket } from "../provider-http.ts";
import { isRecord } from "../upstream/failure.ts";
import { noImage } from "../upstream/image-answer.ts";
import { madeImage } from "../upstream/made-image.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { PreviewWatch } from "./preview-watch.ts";
import { ComfyuiServer, type StoredImage } from "./server.ts";
import { graphFor, type Workflow, workflowOf } from "./workflow.ts";

/** What the adapter is made from. */
export interface ComfyuiOptions {
  readonly http: ProviderHttp;
  readonly webSocket: OpenWebSocket | undefined;
  /** The first pause before the history is asked; each is half as long again, up to the most. Milliseconds. */
  readonly firstPauseMs?: number;
  readonly mostPauseMs?: number;
}

const pauseGrowth = 1.5;

/** Makes the adapter. */
export function createComfyuiAdapter({ http, webSocket, ...pace }: ComfyuiOptions): ImageAdapter {
  return {
    async generate(call, { signal, connection, onSent }) {
      const left = new AbortController();
      const context = { signal: AbortSignal.any([signal, left.signal]), connection, onSent };
      const workflow = workflowOf(
        isRecord(call.settings.edit) && call.references.length > 0 ? call.settings.edit : call.settings,
      );
      const prompt = new RunningPrompt(call, workflow, context, http);
      await prompt.begin(webSocket);
      const output = prompt.output({ firstPauseMs: 200, mostPauseMs: 2_000, ...pace });
      return { output: untilLeft(output, { cancel: () => left.abort() }), report: () => undefined };
    },
  };
}

interface Pace {
  readonly firstPauseMs: number;
  readonly mostPauseMs: number;
}

/** One prompt from its queueing to its images. */
class RunningPrompt {
  readonly #call: ImageCall;
  readonly #workflow: Workflow;
  readonly #server: ComfyuiServer;
  readonly #watch = new PreviewWatch();
  #id = randomUUID() as string;
  #socket: ProviderWebSocket | undefined;
  #isSent = false;
  #hasEnded = false;

  constructor(call: ImageCall, workflow: Workflow, context: AttemptContext, http: ProviderHttp) {
    this.#call = call;
    this.#workflow = workflow;
    const onSent = () => {
      this.#isSent = true;
      context.onSent();
    };
    this.#server = new ComfyuiServer(http, { ...context, onSent }, call.prompt);
  }

  /** Resolves once the server has it in its queue. Throws ProviderError. */
  async begin(open: OpenWebSocket | undefined): Promise<void> {
    const { references, mask, stream, partialImages } = this.#call;
    const clientId = randomUUID();
    try {
      const uploaded: string[] = [];
      for (const reference of references) uploaded.push(await this.#server.upload(reference));
      const images = { references: uploaded, mask: mask && (await this.#server.upload(mask)) };
      if (stream && partialImages !== 0 && open !== undefined) {
        this.#socket = await this.#server.listen(open, clientId, (message) => this.#watch.hear(message));
      }
      const graph = graphFor(this.#call, this.#workflow, images, this.#id.slice(0, 8));
      this.#id = await this.#server.queue(graph, clientId, this.#id);
    } catch (thrown) {
      // What was refused or never sent waits nowhere.
      if (thrown instanceof ProviderError && thrown.status !== undefined) this.#hasEnded = true;
      this.#leave();
      throw thrown;
    }
  }

  async *output(pace: Pace): AsyncGenerator<ImageOutput, void> {
    let made: readonly StoredImage[];
    try {
      made = yield* this.#untilEnd(pace);
    } finally {
      this.#leave();
    }
    for (const image of made.slice(0, this.#call.n)) yield madeImage(await this.#server.view(image));
  }

  async *#untilEnd({ firstPauseMs, mostPauseMs }: Pace): AsyncGenerator<ImageOutput, readonly StoredImage[]> {
    const most = this.#call.partialImages ?? Number.POSITIVE_INFINITY;
    let index = 0;
    let pauseMs = firstPauseMs;
    let nextAskMs = performance.now() + pauseMs;
    for (;;) {
      const hasEnded = await this.#watch.next(
        this.#id,
        Math.max(0, nextAskMs - performance.now()),
        this.#server.signal,
      );
      const preview = this.#watch.take(this.#id);
      const type = preview && sniffImageType(preview);
      if (preview !== undefined && type !== undefined && index < most) {
        yield { kind: "partial", index, bytes: preview, mediaType: mediaTypes[type] };
        index += 1;
      }
      if (!hasEnded && performance.now() < nextAskMs && !this.#server.signal.aborted) continue;
      const entry = await this.#server.history(this.#id);
      if (entry !== undefined) {
        this.#hasEnded = true;
        return this.#imagesOf(entry);
      }
      pauseMs = Math.min(mostPauseMs, pauseMs * pauseGrowth);
      nextAskMs = performance.now() + pauseMs;
    }
  }

  #leave(): void {
    this.#socket?.close();
    if (this.#isSent && !this.#hasEnded) void this.#server.remove(this.#id);
  }

  /** The images of a prompt that has ended. Throws ProviderError where it failed or made none. */
  #imagesOf({ status, outputs }: Readonly<Record<string, unknown>>): readonly StoredImage[] {
    if (isRecord(status) && status.status_str === "error") throw this.#failureOf(status.messages);
    const nodes = Object.entries(isRecord(outputs) ? outputs : {});
    const images = nodes
      .filter(([node]) => node === (this.#workflow.output ?? node))
      .flatMap(([, output]) => (isRecord(output) && Array.isArray(output.images) ? output.images : []))
      .filter(isStored);
    const kept = images.filter(({ type }) => type === "output");
    if (images.length > 0) return kept.length > 0 ? kept : images;
    throw noImage();
  }

  #failureOf(messages: unknown): ProviderError {
    const told: readonly unknown[] = Array.isArray(messages) ? messages : [];
    const failure = told.findLast(
      (each) =>
        Array.isArray(each) && /^execution_(error|interrupted)$/.test(String(each[0])) && isRecord(each[1]),
    ) as readonly [string, Readonly<Record<string, unknown>>] | undefined;
    const [name = "", { node_type: node, exception_type: type, exception_message: message } = {}] =
      failure ?? [];
    const isFull = /OutOfMemory/.test(String(type));
    const words = [name, node, type, message].filter((part) => typeof part === "string").join(": ");
    return this.#server.failure(
      isFull ? "overloaded" : "upstream",
      "The upstream failed at its work.",
      words,
    );
  }
}

function isStored(value: unknown): value is StoredImage {
  return (
    isRecord(value) && [value.filename, value.subfolder, value.type].every((part) => typeof part === "string")
  );
}
