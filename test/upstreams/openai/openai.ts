/**
 * A stand-in for OpenAI's API, and for others of its shape, over real HTTP: checks requests as the vendor does and answers
 * as it is told.
 */

import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  type StandInOptions,
  startStandIn,
} from "../stand-in/stand-in-server.ts";
import { behaviourOfMarker, type SpeechBehaviour } from "./openai-behaviour.ts";
import { createImageAnswers } from "./openai-image.ts";
import { type ImageBehaviour, imageBehaviourOfMarker } from "./openai-image-behaviour.ts";
import {
  checkEdit,
  checkGeneration,
  type ImageOffer,
  type ImageRequestBody,
} from "./openai-image-request.ts";
import {
  checkSpeechRequest,
  refusal,
  refuseKey,
  type SpeechOffer,
  type SpeechRequestBody,
} from "./openai-request.ts";
import { createSpeechAnswers, sendError } from "./openai-speech.ts";

/** Options of startOpenAiUpstream. */
export interface OpenAiUpstreamOptions {
  port?: number;
  /** Whether requests are kept; off for load. */
  log?: boolean;
  /** The key that it knows; "test-key" by default. */
  apiKey?: string;
  /** Another vendor's offers in the place of OpenAI's. */
  speech?: SpeechOffer;
  images?: ImageOffer;
  /** What stands before `/audio/speech` and `/images/…`; "/v1" by default. */
  pathPrefix?: string;
  /** Chooses by request where nothing is queued; undefined falls through to markers and `otherwise`. */
  behave?: (body: SpeechRequestBody) => SpeechBehaviour | undefined;
  /** Before a request's body is read, by its headers; nothing is read before it resolves. */
  beforeBody?: StandInOptions["beforeBody"];
  /** What happens where nothing else is said; audio in a burst by default. */
  otherwise?: SpeechBehaviour;
  /** The same for images: what was asked for, at once, by default. */
  behaveImage?: (body: ImageRequestBody) => ImageBehaviour | undefined;
  otherwiseImage?: ImageBehaviour;
}

/** A running stand-in. */
export interface OpenAiUpstream extends StandIn {
  /** Queues behaviours for the next valid requests, one each; they come before everything else. */
  next(...behaviours: (SpeechBehaviour | ImageBehaviour)[]): void;
}

/** Starts it on the loopback. The behaviour of a valid request: queued, else `behave`, else its marker, else `otherwise`. */
export async function startOpenAiUpstream(options: OpenAiUpstreamOptions = {}): Promise<OpenAiUpstream> {
  const { apiKey = "test-key", pathPrefix = "/v1", behave, otherwise = { kind: "audio" } } = options;
  const { behaveImage, otherwiseImage = { kind: "image" } } = options;
  const queued: (SpeechBehaviour | ImageBehaviour)[] = [];
  const answerSpeech = createSpeechAnswers();
  const answerImages = createImageAnswers();

  const speak = (request: ReceivedRequest, answer: StandInAnswer) => {
    const checked = checkSpeechRequest(jsonOf(request), options.speech);
    if ("refusal" in checked) return sendError(answer, checked.refusal);
    const { body } = checked;
    const behaviour = queued.shift() ?? behave?.(body) ?? behaviourOfMarker(body.input) ?? otherwise;
    if (behaviour.kind === "image") throw new Error("an image was queued where speech was asked for");
    return answerSpeech(body, behaviour, answer);
  };
  const draw = async (request: ReceivedRequest, answer: StandInAnswer) => {
    const isEdit = request.path.endsWith("/edits");
    const checked = isEdit
      ? await checkEdit(request, options.images)
      : checkGeneration(jsonOf(request), options.images);
    if ("refusal" in checked) return sendError(answer, checked.refusal);
    const { body } = checked;
    const behaviour =
      queued.shift() ?? behaveImage?.(body) ?? imageBehaviourOfMarker(body.prompt) ?? otherwiseImage;
    if (behaviour.kind === "audio") throw new Error("speech was queued where an image was asked for");
    return answerImages(body, behaviour, answer);
  };
  const routes = new Map([
    [`POST ${pathPrefix}/audio/speech`, speak],
    [`POST ${pathPrefix}/images/generations`, draw],
    [`POST ${pathPrefix}/images/edits`, draw],
  ]);

  const standIn = await startStandIn((request, answer) => {
    const route = routes.get(`${request.method} ${request.path}`);
    if (route === undefined) {
      const message = `Invalid URL (${request.method} ${request.path})`;
      return sendError(answer, refusal(404, message, null, null));
    }
    const wrongKey = refuseKey(request.headers, apiKey);
    return wrongKey === undefined ? route(request, answer) : sendError(answer, wrongKey);
  }, options);

  return { ...standIn, next: (...behaviours) => void queued.push(...behaviours) };
}

function jsonOf({ headers, json }: ReceivedRequest): unknown {
  return headers["content-type"]?.startsWith("application/json") ? json : undefined;
}
