/**
 * Passes the audio of a synthesis on to the client as it comes.
 *
 * 1. Nothing is sent before the first audio: until then a failure is thrown and can be answered as JSON.
 * 2. The next frame is asked for only once the connection took the last one, so memory is bounded by one frame and
 *    what the transports read ahead.
 * 3. When the client leaves, takes nothing for too long, or the deadline passes, the call is cancelled at once.
 * 4. The answer ends only after `finished` and the clean end of the call; whatever else happens is thrown, and whoever
 *    catches it cuts the connection.
 */
import type { ServerResponse } from "node:http";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import {
  AudioFormat,
  type SynthesisStarted,
  type SynthesizeResponse,
} from "../gen/media/speech/v1/speech_pb.ts";
import { consumeStream } from "../lib/runtime/client.ts";
import type { Clock } from "../lib/runtime/clock.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import type { Exchange } from "./exchange.ts";
import { fromServiceError } from "./service-error.ts";

/** What bounds an audio answer. */
export interface AudioStreamLimits {
  /** How long the client may take nothing. */
  stallTimeoutMs: number;
  /** When all must have ended, monotonic milliseconds. */
  deadlineMs: number;
  clock: Clock;
}

const contentTypes: Readonly<Partial<Record<AudioFormat, string>>> = {
  [AudioFormat.MP3]: "audio/mpeg",
  [AudioFormat.PCM]: "audio/pcm",
};
/** Longest header of ignored parameters, so that no client chokes on an answer's headers. */
const maxIgnoredLength = 2048;

/** Streams a whole answer. Throws DomainError when it did not become one, whether or not it had begun. */
export async function streamAudio(
  exchange: Exchange,
  open: (signal: AbortSignal) => AsyncIterable<SynthesizeResponse>,
  limits: AudioStreamLimits,
): Promise<void> {
  const { response } = exchange;
  const { clientGone } = exchange;
  let started: SynthesisStarted | undefined;
  let finished = false;
  try {
    for await (const { frame } of consumeStream(open, clientGone)) {
      if (frame.case === "audio") {
        if (started === undefined) throw brokenStream("audio before its start");
        if (clientGone.aborted) throw left();
        if (!response.headersSent) response.writeHead(200, audioHeaders(started));
        exchange.bytesSent += frame.value.byteLength;
        if (!response.write(frame.value)) await drained(response, limits);
      } else if (frame.case === "started") {
        started = frame.value;
        exchange.generationId = started.generationId;
      } else if (frame.case === "finished") {
        finished = true;
      }
    }
    if (!finished || !response.headersSent) throw brokenStream("the stream ended early");
  } catch (thrown) {
    const error = fromServiceError(thrown);
    throw error.generationId === "" ? error.withGenerationId(exchange.generationId) : error;
  }
  response.end();
}

function audioHeaders(started: SynthesisStarted): Record<string, string> {
  const contentType = contentTypes[started.format];
  if (contentType === undefined) throw brokenStream("an encoding without a name");
  const headers: Record<string, string> = {
    "content-type": contentType,
    "x-generation-id": started.generationId,
    "x-audio-sample-rate": String(started.sampleRateHz),
    "x-audio-channels": String(started.channels),
  };
  const ignored = ignoredParametersHeader(started.ignoredParameters);
  return ignored === "" ? headers : { ...headers, "x-ignored-parameters": ignored };
}

/** Names of parameters as a header lists them: with commas between, what no header may hold percent-encoded. */
export function ignoredParametersHeader(names: readonly string[]): string {
  let header = "";
  for (const name of names) {
    const next = name.toWellFormed().replace(/[^\w.[\]~-]/gu, encodeURIComponent);
    if (header.length + next.length >= maxIgnoredLength) break;
    header += header === "" ? next : `,${next}`;
  }
  return header;
}

/** Resolves when the connection takes more. Throws timed_out on a stall or at the deadline, cancelled when it closes. */
function drained(
  response: ServerResponse,
  { stallTimeoutMs, deadlineMs, clock }: AudioStreamLimits,
): Promise<void> {
  if (response.destroyed) return Promise.reject(left());
  // An answer behind another one on its connection has no socket yet, and can't be stalled by its client.
  const { socket } = response;
  return new Promise((resolve, reject) => {
    const settle = (error?: DomainError) => {
      clearTimeout(timer);
      socket?.setTimeout(0);
      response.off("drain", onDrain).off("close", onClose).off("timeout", onStall);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onDrain = () => settle();
    const onClose = () => settle(left());
    const onStall = () => settle(new DomainError(ErrorReason.TIMED_OUT, "the client takes nothing"));
    const onDeadline = () => settle(new DomainError(ErrorReason.TIMED_OUT, "the request took too long"));
    const timer = setTimeout(onDeadline, Math.max(0, deadlineMs - clock.monotonicMs()));
    // The socket's own timer counts progress within one write, which `drain` does not show.
    socket?.setTimeout(stallTimeoutMs);
    response.on("drain", onDrain).on("close", onClose).on("timeout", onStall);
  });
}

function left(): DomainError {
  return new DomainError(ErrorReason.CANCELLED, "the client went away");
}

function brokenStream(message: string): DomainError {
  return new DomainError(ErrorReason.INTERNAL, `speech answered against its contract: ${message}`);
}
