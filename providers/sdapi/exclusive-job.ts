/**
 * One job of a server that nobody else uses: previews from its progress while it draws, and an interrupt when it is left.
 *
 * 1. The next job begins only once the server has answered this one: its progress would show this one's picture, and an
 *    interrupt that is late would end the next.
 * 2. So leaving ends the caller's wait at once, but not the request: it is interrupted, again and again since a job that
 *    is only beginning does not hear it, and its connection is closed only where that does not help in time.
 * 3. Progress is asked when the consumer wants more, never faster than the pause; a picture is handed on once.
 */
import { setTimeout as pause } from "node:timers/promises";
import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import type { AttemptContext, ImageCall, ImageOutput } from "../contract.ts";
import type { ProviderHttp, ProviderHttpRequest } from "../provider-http.ts";
import { errorFromTransport } from "../upstream/failure.ts";
import { readJsonObject, send } from "../upstream/send.ts";
import { untilLeft } from "../upstream/until-left.ts";
import { decodeImage, handedOut, previewOf } from "./drawn-images.ts";
import type { SdapiJob } from "./job.ts";

interface ExclusiveJob {
  readonly http: ProviderHttp;
  readonly job: SdapiJob;
  readonly call: ImageCall;
  readonly context: AttemptContext;
  /** Has the server draw; resolves with all images. */
  draw(bounds: Pick<ProviderHttpRequest, "signal" | "onSent">): Promise<Uint8Array[]>;
  /** Lets the next job begin. */
  release(): void;
  readonly previewPauseMs: number;
  readonly interruptGraceMs: number;
}

const maxProgressBytes = 32 * 1024 * 1024;
const interruptPauseMs = 500;
const interruptTimeoutMs = 5_000;

/** Resolves once the server has the job where previews are wanted, otherwise once it has drawn. Throws ProviderError. */
export async function runExclusively(given: ExclusiveJob): Promise<AsyncIterable<ImageOutput>> {
  const { call } = given;
  const running = new RunningJob(given);
  if (call.stream) await running.sent;
  else await running.images;
  const output = async function* (): AsyncGenerator<ImageOutput, void> {
    if (call.stream) yield* previews(given, running);
    yield* handedOut(() => running.images, call);
  };
  return untilLeft(output(), { cancel: () => running.leave() });
}

class RunningJob {
  /** Resolves when the server has all of the request; rejects where it never had. */
  readonly sent: Promise<void>;
  /** Rejects at once when the job is left. */
  readonly images: Promise<Uint8Array[]>;
  /** Fires when the job is over or was left. */
  readonly over: AbortSignal;
  readonly #given: ExclusiveJob;
  readonly #over = new AbortController();
  readonly #request = new AbortController();
  readonly #left = Promise.withResolvers<never>();
  readonly #answered = new AbortController();
  #isSent = false;
  #interrupting: Promise<void> | undefined;

  constructor(given: ExclusiveJob) {
    const { context, release } = given;
    this.#given = given;
    this.over = this.#over.signal;
    const { promise: sent, resolve: onSent } = Promise.withResolvers<void>();
    const leave = () => this.leave();
    const drawn = given.draw({
      signal: this.#request.signal,
      onSent: () => {
        this.#isSent = true;
        context.onSent();
        onSent();
      },
    });
    this.images = Promise.race([drawn, this.#left.promise]);
    this.sent = Promise.race([sent, this.images.then(() => undefined)]);
    // Whoever waits for them hears of it.
    for (const promise of [drawn, this.images, this.sent]) promise.catch(() => undefined);
    context.signal.addEventListener("abort", leave);
    if (context.signal.aborted) leave();
    const end = async () => {
      this.#answered.abort();
      context.signal.removeEventListener("abort", leave);
      this.#over.abort();
      await this.#interrupting;
      release(); // 1.
    };
    drawn.then(end, end);
  }

  /** Ends it; does nothing after its end. */
  leave(): void {
    if (this.over.aborted) return;
    this.#over.abort();
    const { signal } = this.#given.context;
    this.#left.reject(errorFromTransport(new OutboundHttpError("aborted", signal.reason), signal));
    if (this.#isSent) this.#interrupting = this.#interrupt();
    else this.#request.abort();
  }

  async #interrupt(): Promise<void> {
    const { http, job, interruptGraceMs } = this.#given;
    const ended = AbortSignal.any([this.#answered.signal, this.#request.signal]);
    const timer = setTimeout(() => this.#request.abort(), interruptGraceMs); // 2.
    while (!ended.aborted) {
      const request = { ...job.ask("POST", "interrupt"), signal: AbortSignal.timeout(interruptTimeoutMs) };
      await send(http, request, job.failures).then(
        (response) => response.cancel(),
        () => undefined,
      );
      await pause(interruptPauseMs, undefined, { signal: ended }).catch(() => undefined);
    }
    clearTimeout(timer);
  }
}

async function* previews(
  { http, job, call, previewPauseMs }: ExclusiveJob,
  { over }: RunningJob,
): AsyncGenerator<ImageOutput, void> {
  const most = call.partialImages ?? Number.POSITIVE_INFINITY;
  let last: string | undefined;
  for (let index = 0; index < most; ) {
    await pause(previewPauseMs, undefined, { signal: over }).catch(() => undefined); // 3.
    if (over.aborted) return;
    const image = await askPreview(http, job, over);
    if (image === failed || over.aborted) return;
    if (image === undefined || image === last) continue;
    last = image;
    const bytes = decodeImage(image);
    const type = sniffImageType(bytes);
    if (type === undefined) continue;
    yield { kind: "partial", index, bytes, mediaType: mediaTypes[type] };
    index += 1;
  }
}

const failed = Symbol("no progress here");

/** Servers without progress draw all the same. */
async function askPreview(http: ProviderHttp, job: SdapiJob, signal: AbortSignal) {
  try {
    const response = await send(http, { ...job.ask("GET", "progress"), signal }, job.failures);
    return previewOf(await readJsonObject(response, signal, maxProgressBytes), job);
  } catch {
    return failed;
  }
}
