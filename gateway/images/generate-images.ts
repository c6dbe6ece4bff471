import type { Client } from "@connectrpc/connect";
import type { GenerateRequest, GenerationStarted } from "../../gen/media/image/v1/image_pb.ts";
import type { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import { answerGraceMs } from "../../lib/generation/answer-grace.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { BodyLimits } from "../body/request-body.ts";
import { AnswerWriter } from "../http/back-pressure.ts";
import type { Exchange } from "../http/exchange.ts";
import type { WireNames } from "../http/service-call.ts";
import { answerImages } from "./answer.ts";
import { ImageEvents } from "./events.ts";
import { createImageForm, type ImageForm } from "./form.ts";
import { ImageJson } from "./json.ts";

/** What the doors to image generation need. */
export interface ImagesDependencies {
  image: Client<typeof ImageService>;
  bodyLimits: BodyLimits;
  clientStallTimeoutMs: number;
  imageTimeoutMs: number;
  keepAliveMs: number;
  clock: Clock;
}

/** What differs between the doors once a body was read. */
export interface ImageDoor {
  createForm(createdUnixS: number, started: GenerationStarted): ImageForm;
  /** Whether a client that asked for a stream gets events also where the endpoint gives no previews. */
  readonly alwaysStreams: boolean;
  /** What this door's clients call a parameter that had no effect; undefined: nothing of theirs. */
  nameIgnored(name: string): string | undefined;
  readonly wireNames?: WireNames;
}

/** POST /images. */
export const ownImageDoor: ImageDoor = {
  createForm: createImageForm,
  alwaysStreams: false,
  nameIgnored: (name) => name,
  wireNames: { "input_references.*": "input_references.*.image_url.url" },
};

/** Makes what a request asks for and answers with it in the form of a door. Throws before or while the answer runs. */
export async function generateImages(
  exchange: Exchange,
  request: GenerateRequest,
  door: ImageDoor,
  { image, clientStallTimeoutMs, imageTimeoutMs, keepAliveMs, clock }: ImagesDependencies,
): Promise<void> {
  const deadlineMs = exchange.startedMs + imageTimeoutMs;
  const timeoutMs = Math.max(1, Math.ceil(deadlineMs - clock.monotonicMs())) + answerGraceMs;
  const contextValues = exchange.callContext();
  const limits = { stallTimeoutMs: clientStallTimeoutMs, deadlineMs, clock };
  await answerImages(
    exchange,
    (signal) => image.generate(request, { signal, timeoutMs, contextValues }),
    (frame) => {
      const started = { ...frame, ignoredParameters: ignoredAt(door, frame) };
      const writer = new AnswerWriter(exchange, limits);
      const form = door.createForm(Math.floor(clock.nowMs() / 1000), started);
      const streams = request.stream && (started.streaming || door.alwaysStreams);
      if (!streams) return new ImageJson(writer, started, form);
      const headersInMs = exchange.startedMs + keepAliveMs - clock.monotonicMs();
      const n = request.n ?? 1;
      return new ImageEvents({ exchange, writer, started, form, n, keepAliveMs, headersInMs });
    },
    door.wireNames,
  );
}

function ignoredAt(door: ImageDoor, { ignoredParameters }: GenerationStarted): string[] {
  return ignoredParameters.map(door.nameIgnored).filter((name) => name !== undefined);
}
