/**
 * One attempt at one endpoint, from the call to images as the client gets them.
 *
 * 1. It has begun once its first output is in hand: the first image, or whatever comes first where previews are wanted;
 *    there also when the upstream has accepted and nothing came for long.
 * 2. What is yielded has the truth about its bytes; an image in another encoding than asked for is made into that one.
 * 3. An image is held by nobody here once it was handed out, and the next is asked for only then.
 */

import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import { maxPartialImageBytes } from "../../lib/limits/image-messages.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { ImageEndpoint } from "../../providers/catalog/catalog.ts";
import {
  type ImageAnswer,
  type ImageOutput,
  ProviderError,
  type UpstreamReport,
} from "../../providers/contract.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import type { AttemptBounds } from "../../providers/routing/attempt.ts";
import type { Candidate } from "../../providers/routing/candidate.ts";
import { transcodeImage } from "./encode.ts";
import type { ImageRequest } from "./image-request.ts";
import { type LoadedReferences, type PlannedCall, planCall } from "./plan.ts";
import type { DecodeRoom } from "./references/decode-budget.ts";

/** Of the process, but for `room`. */
export interface DrawingDependencies {
  readonly providers: Pick<
    ProviderSet,
    "image" | "isOn" | "operatorKeys" | "switchVariable" | "takesOwnKeys"
  >;
  /** Where images of this caller's key are transcoded. */
  readonly room: DecodeRoom;
  readonly clock: Clock;
}

interface DrawingLimits extends AttemptBounds {
  /** When a streaming answer begins even without an output, monotonic milliseconds. */
  readonly startByMs: number;
}

/** An endpoint whose first output is in hand. */
export interface Drawing {
  /** Whether previews can follow. */
  readonly streaming: boolean;
  readonly ignoredParameters: readonly string[];
  /** Words of the prompt that the provider says it did not understand: a few, none of them long. */
  readonly unrecognizedPromptWords: readonly string[];
  /** Everything, the first output included. May be consumed once; throws ProviderError. */
  readonly outputs: AsyncIterator<ImageOutput, undefined>;
  /** What the upstream reported, once the outputs have ended. */
  report(): UpstreamReport | undefined;
}

/** Asks an endpoint. Resolves with its first output in hand; throws ProviderError, also where no image comes. */
export async function beginDrawing(
  endpoint: Candidate<ImageEndpoint>,
  request: ImageRequest,
  references: LoadedReferences,
  { providers, room, clock }: DrawingDependencies,
  { signal, onSent, startByMs }: DrawingLimits,
): Promise<Drawing> {
  const { adapter, connection } = await providers.image(endpoint.providerSlug, endpoint);
  const plan = planCall(endpoint, request, references);
  const answer = await adapter.generate(plan.call, { signal, onSent, connection });
  const rest = deliverable(answer, plan, room, signal);
  const first = rest.next();
  // 1.
  if (plan.call.stream) await firstOrSilence(first, startByMs - clock.monotonicMs());
  else await first;
  return {
    streaming: plan.call.stream,
    ignoredParameters: plan.ignoredParameters,
    unrecognizedPromptWords: fewShortWords(answer.unrecognizedWords ?? []),
    outputs: new Pushed(first, rest),
    report: () => answer.report(),
  };
}

const mostWords = 32;
const longestWord = 64;

/** Whatever a provider says, this much of it goes on: words, and characters of each. */
function fewShortWords(words: readonly string[]): readonly string[] {
  return words.slice(0, mostWords).map((word) => [...word].slice(0, longestWord).join(""));
}

/** Resolves when the first output is in hand or after `silenceMs`; throws what the first output throws before that. */
async function firstOrSilence(first: Promise<unknown>, silenceMs: number): Promise<void> {
  const silence = Promise.withResolvers<void>();
  const timer = setTimeout(silence.resolve, Math.max(0, silenceMs));
  // A failure after the silence is heard by whoever asks for the output.
  first.catch(() => undefined);
  try {
    await Promise.race([first, silence.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** An iterator with one result pushed back, which it lets go of when it is taken. */
class Pushed<T> implements AsyncIterator<T, undefined> {
  #first: Promise<IteratorResult<T, undefined>> | undefined;
  readonly #rest: AsyncGenerator<T, undefined>;

  constructor(first: Promise<IteratorResult<T, undefined>>, rest: AsyncGenerator<T, undefined>) {
    this.#first = first;
    this.#rest = rest;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const first = this.#first;
    this.#first = undefined; // 3.
    return first ?? this.#rest.next();
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#first = undefined;
    return this.#rest.return(undefined);
  }
}

/** What of an answer goes to the client; throws `bad_answer` where it ends without an image. */
async function* deliverable(
  answer: ImageAnswer,
  plan: PlannedCall,
  room: DecodeRoom,
  signal: AbortSignal,
): AsyncGenerator<ImageOutput, undefined> {
  const source = answer.output[Symbol.asyncIterator]();
  const delivered = { images: 0, partials: 0 };
  try {
    for (;;) {
      const output = await nextDeliverable(source, delivered, plan, room, signal);
      if (output === undefined) break;
      yield output;
    }
  } finally {
    // Does nothing after the end, and nobody can do anything about its failure.
    await source.return?.().catch(() => undefined);
  }
  if (delivered.images === 0) throw new ProviderError("bad_answer", "The answer has no image.");
}

interface Delivered {
  images: number;
  partials: number;
}

/** A function of its own, so that no generator keeps the bytes that were transcoded. */
async function nextDeliverable(
  source: AsyncIterator<ImageOutput>,
  delivered: Delivered,
  plan: PlannedCall,
  room: DecodeRoom,
  signal: AbortSignal,
): Promise<ImageOutput | undefined> {
  for (;;) {
    const next = await source.next();
    if (next.done) return undefined;
    const output = next.value;
    // More than was asked for is not the client's to pay.
    if (output.kind === "image" && delivered.images < plan.call.n) {
      delivered.images += 1;
      return await finalImage(output.bytes, plan, room, signal);
    }
    if (!plan.call.stream || output.kind === "image") continue;
    if (output.kind === "text") return output;
    const { partialImages = Infinity, n } = plan.call;
    if (delivered.partials >= partialImages * n) continue;
    if (output.bytes.length <= maxPartialImageBytes) return { ...output, index: delivered.partials++ };
  }
}

async function finalImage(
  bytes: Uint8Array,
  { call, format, compression }: PlannedCall,
  room: DecodeRoom,
  signal: AbortSignal,
): Promise<ImageOutput> {
  const type = sniffImageType(bytes); // 2.
  if (type === undefined) throw new ProviderError("bad_answer", "The answer is no image.");
  const { background } = call;
  const final = await transcodeImage(bytes, type, format, { compression, background, room, signal });
  return { kind: "image", bytes: final, mediaType: mediaTypes[format] };
}
