/** A stand-in for OpenAI's API over real HTTP: checks requests as the vendor does and answers as it is told. */
import { behaviourOfMarker, type SpeechBehaviour } from "./openai-behaviour.ts";
import { checkSpeechRequest, refuseKey, type SpeechRequestBody } from "./openai-request.ts";
import { createSpeechAnswers, sendError } from "./openai-speech.ts";
import { type StandIn, startStandIn } from "./stand-in-server.ts";

/** Options of startOpenAiUpstream. */
export interface OpenAiUpstreamOptions {
  port?: number;
  /** Whether requests are kept; off for load. */
  log?: boolean;
  /** The key that it knows; "test-key" by default. */
  apiKey?: string;
  /** Chooses by request where nothing is queued; undefined falls through to markers and `otherwise`. */
  behave?: (body: SpeechRequestBody) => SpeechBehaviour | undefined;
  /** What happens where nothing else is said; audio in a burst by default. */
  otherwise?: SpeechBehaviour;
}

/** A running stand-in. */
export interface OpenAiUpstream extends StandIn {
  /** Queues behaviours for the next valid requests, one each; they come before everything else. */
  next(...behaviours: SpeechBehaviour[]): void;
}

/** Starts it on the loopback. The behaviour of a valid request: queued, else `behave`, else its marker, else `otherwise`. */
export async function startOpenAiUpstream(options: OpenAiUpstreamOptions = {}): Promise<OpenAiUpstream> {
  const { apiKey = "test-key", behave, otherwise = { kind: "audio" } } = options;
  const queued: SpeechBehaviour[] = [];
  const answerSpeech = createSpeechAnswers();

  const standIn = await startStandIn((request, answer) => {
    if (request.method !== "POST" || request.path !== "/v1/audio/speech") {
      const message = `Invalid URL (${request.method} ${request.path})`;
      sendError(answer, { status: 404, message, type: "invalid_request_error", param: null, code: null });
      return;
    }
    const wrongKey = refuseKey(request.headers, apiKey);
    if (wrongKey !== undefined) {
      sendError(answer, wrongKey);
      return;
    }
    const checked = checkSpeechRequest(
      request.headers["content-type"]?.startsWith("application/json") ? request.json : undefined,
    );
    if ("refusal" in checked) {
      sendError(answer, checked.refusal);
      return;
    }
    const { body } = checked;
    const behaviour = queued.shift() ?? behave?.(body) ?? behaviourOfMarker(body.input) ?? otherwise;
    return answerSpeech(body, behaviour, answer);
  }, options);

  return { ...standIn, next: (...behaviours) => void queued.push(...behaviours) };
}
