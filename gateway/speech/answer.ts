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
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  AudioFormat,
  type SynthesisStarted,
  type SynthesizeResponse,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { consumeStream } from "../../lib/rpc/client.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { clientLeft, drained, type StreamLimits } from "../http/back-pressure.ts";
import type { Exchange } from "../http/exchange.ts";
import { ignoredParametersHeaders } from "../http/header-list.ts";
import { fromServiceError } from "../http/service-call.ts";

const contentTypes: Readonly<Partial<Record<AudioFormat, string>>> = {
  [AudioFormat.MP3]: "audio/mpeg",
  [AudioFormat.PCM]: "audio/pcm",
};

/** Streams a whole answer. Throws DomainError when it did not become one, whether or not it had begun. */
export async function streamAudio(
  exchange: Exchange,
  open: (signal: AbortSignal) => AsyncIterable<SynthesizeResponse>,
  limits: StreamLimits,
): Promise<void> {
  const { response } = exchange;
  const { clientGone } = exchange;
  let started: SynthesisStarted | undefined;
  let finished = false;
  try {
    // 3.
    for await (const { frame } of consumeStream(open, clientGone)) {
      if (frame.case === "audio") {
        if (started === undefined) throw brokenStream("audio before its start");
        if (clientGone.aborted) throw clientLeft();
        if (!response.headersSent) response.writeHead(200, audioHeaders(started)); // 1.
        exchange.bytesSent += frame.value.byteLength;
        if (!response.write(frame.value)) await drained(response, limits); // 2.
      } else if (frame.case === "started") {
        started = frame.value;
        exchange.generationId = started.generationId;
      } else if (frame.case === "finished") {
        finished = true;
      }
    }
    if (!finished || !response.headersSent) throw brokenStream("the stream ended early"); // 4.
  } catch (thrown) {
    const error = fromServiceError(thrown);
    throw error.generationId === "" ? error.withGenerationId(exchange.generationId) : error;
  }
  response.end();
}

function audioHeaders(started: SynthesisStarted): Record<string, string> {
  const contentType = contentTypes[started.format];
  if (contentType === undefined) throw brokenStream("an encoding without a name");
  return {
    "content-type": contentType,
    "x-generation-id": started.generationId,
    "x-audio-sample-rate": String(started.sampleRateHz),
    "x-audio-channels": String(started.channels),
    ...ignoredParametersHeaders(started.ignoredParameters),
  };
}

function brokenStream(message: string): DomainError {
  return new DomainError(ErrorReason.INTERNAL, `speech answered against its contract: ${message}`);
}
