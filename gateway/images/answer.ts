/**
 * Passes what a generation gives on to the client, as JSON (image-json.ts) or as events (image-events.ts).
 *
 * 1. Until the first bytes go out, a failure is thrown and can be answered with its own status. The service starts an
 *    image only once it holds the image's final bytes, so what has begun rarely breaks.
 * 2. The next frame, or piece of an image, is asked for only once the connection took the last one or lies behind by no
 *    more than AnswerWriter allows, so memory is bounded by that, one frame and what the transports read ahead.
 * 3. When the client leaves, takes nothing for too long, or the deadline passes, the call is cancelled at once.
 * 4. An answer ends whole only after every image has all its bytes, `finished` came and the call ended cleanly;
 *    whatever else happens is thrown, and whoever catches it cuts the connection or says so in the stream.
 */
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type {
  GenerateResponse,
  GenerationFinished,
  GenerationStarted,
  ImageStart,
  PartialImage,
  TextChunk,
} from "../../gen/media/image/v1/image_pb.ts";
import { consumeStream } from "../../lib/rpc/client.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { clientLeft } from "../http/back-pressure.ts";
import type { Exchange } from "../http/exchange.ts";
import { headerList, ignoredParametersHeaders } from "../http/header-list.ts";
import { fromServiceError, type WireNames } from "../http/service-call.ts";

/** Something to wait for before more is written, or nothing. */
export type Written = Promise<void> | undefined;

/** One way to show a generation to the client. Its methods are called one at a time, in the order of the frames. */
export interface ImageAnswer {
  partial(partial: PartialImage): Written;
  text(chunk: TextChunk): Written;
  imageStart(start: ImageStart): Written;
  imageData(bytes: Uint8Array): Written;
  /** The image begun last has all its bytes. */
  imageEnd(): Written;
  /** The generation is whole: ends the answer. */
  end(finished: GenerationFinished): Written;
  /** Called last, whether or not the answer became whole. */
  dispose(): void;
}

/** What has come of the stream so far. */
interface Progress {
  answer: ImageAnswer | undefined;
  images: number;
  /** Bytes that the image begun last still lacks. */
  missingBytes: bigint;
  finished: GenerationFinished | undefined;
}

/** Answers with a whole generation. Throws DomainError when it did not become one, whether or not it had begun. */
export async function answerImages(
  exchange: Exchange,
  open: (signal: AbortSignal) => AsyncIterable<GenerateResponse>,
  createAnswer: (started: GenerationStarted) => ImageAnswer,
  wireNames: WireNames = {},
): Promise<void> {
  const { clientGone } = exchange;
  const progress: Progress = { answer: undefined, images: 0, missingBytes: 0n, finished: undefined };
  try {
    // 3.
    for await (const { frame } of consumeStream(open, clientGone)) {
      if (clientGone.aborted) throw clientLeft();
      if (frame.case === "started") {
        if (progress.answer !== undefined) throw brokenStream("a second start");
        exchange.generationId = frame.value.generationId;
        progress.answer = createAnswer(frame.value);
      } else {
        await take(frame, progress); // 2.
      }
    }
    if (progress.finished === undefined) throw brokenStream("the stream ended early"); // 4.
    await progress.answer?.end(progress.finished);
  } catch (thrown) {
    const error = fromServiceError(thrown, wireNames);
    throw error.generationId === "" ? error.withGenerationId(exchange.generationId) : error; // 1.
  } finally {
    progress.answer?.dispose();
  }
}

function take(frame: GenerateResponse["frame"], progress: Progress): Written | Promise<void> {
  const { answer } = progress;
  if (frame.case === undefined) return;
  if (answer === undefined) throw brokenStream("a frame before its start");
  if (frame.case === "imageData") return takeData(frame.value, answer, progress);
  if (progress.missingBytes > 0n) throw brokenStream("an image lacks bytes"); // 4.
  switch (frame.case) {
    case "partial":
      return answer.partial(frame.value);
    case "textChunk":
      return answer.text(frame.value);
    case "imageStart":
      if (frame.value.sizeBytes <= 0n) throw brokenStream("an image without bytes");
      progress.images += 1;
      progress.missingBytes = frame.value.sizeBytes;
      return answer.imageStart(frame.value);
    case "finished":
      if (progress.images === 0) throw brokenStream("no image");
      progress.finished = frame.value;
  }
}

async function takeData(bytes: Uint8Array, answer: ImageAnswer, progress: Progress): Promise<void> {
  progress.missingBytes -= BigInt(bytes.length);
  if (progress.missingBytes < 0n) throw brokenStream("an image has more bytes than it said");
  await answer.imageData(bytes);
  if (progress.missingBytes === 0n && bytes.length > 0) await answer.imageEnd();
}

/** The headers of an answer with images, whatever its form. */
export function imageHeaders(started: GenerationStarted, contentType: string): Record<string, string> {
  const unrecognized = headerList(started.unrecognizedPromptWords);
  return {
    "content-type": contentType,
    "x-generation-id": started.generationId,
    ...ignoredParametersHeaders(started.ignoredParameters),
    ...(unrecognized === "" ? {} : { "x-unrecognized-prompt-words": unrecognized }),
  };
}

function brokenStream(message: string): DomainError {
  return new DomainError(ErrorReason.INTERNAL, `image answered against its contract: ${message}`);
}
