import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AudioFormat as ProtoAudioFormat,
  type SynthesizeRequest,
  type SynthesizeResponseSchema,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { codePoints } from "../../lib/generation/code-points.ts";
import {
  attributionIssues,
  maxInstructionsCharacters,
  preferenceIssues,
  speedRange,
} from "../../lib/generation/request-limits.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import type { AudioFormat } from "../../providers/contract.ts";
import type { SpeechRequest } from "./speech-request.ts";
import type { SynthesisFrame } from "./synthesize.ts";

const { minimum: minSpeed, maximum: maxSpeed } = speedRange;

/** Throws an `invalid_body` DomainError that names every fault by its REST path. */
export function fromProtoSynthesizeRequest(request: SynthesizeRequest): SpeechRequest {
  const issues = [
    ...textIssues(request),
    ...attributionIssues(request),
    ...preferenceIssues(request.provider),
  ];
  const format = formatByProto.get(request.responseFormat);
  if (format === undefined) issues.push({ path: "response_format", message: "must be mp3 or pcm" });
  if (issues.length > 0 || format === undefined) throw DomainError.invalid(issues);
  return {
    input: request.input,
    model: request.model,
    voice: request.voice,
    format,
    speed: request.speed,
    instructions: request.instructions,
    preferences: request.provider,
  };
}

const formatByProto: ReadonlyMap<ProtoAudioFormat, AudioFormat> = new Map([
  [ProtoAudioFormat.UNSPECIFIED, "mp3"],
  [ProtoAudioFormat.MP3, "mp3"],
  [ProtoAudioFormat.PCM, "pcm"],
]);

/** The wire's word for an encoding. */
export function toProtoAudioFormat(format: AudioFormat): ProtoAudioFormat {
  return format === "mp3" ? ProtoAudioFormat.MP3 : ProtoAudioFormat.PCM;
}

function textIssues(request: SynthesizeRequest): Issue[] {
  const issues: Issue[] = [];
  if (request.input === "") issues.push({ path: "input", message: "is required" });
  if (request.model === "") issues.push({ path: "model", message: "is required" });
  if (request.voice === "") issues.push({ path: "voice", message: "must not be empty" });
  const { speed, instructions } = request;
  if (instructions === "") issues.push({ path: "instructions", message: "must not be empty" });
  if (instructions !== undefined && codePoints(instructions) > maxInstructionsCharacters) {
    issues.push({
      path: "instructions",
      message: `must be at most ${maxInstructionsCharacters} characters`,
    });
  }
  if (speed !== undefined && !(speed >= minSpeed && speed <= maxSpeed)) {
    issues.push({ path: "speed", message: `must be from ${minSpeed} to ${maxSpeed}` });
  }
  return issues;
}

type ProtoFrame = MessageInitShape<typeof SynthesizeResponseSchema>;

/** Frames as they travel; who leaves these leaves those. A generator would cost each of them several promises. */
export function toProtoFrames(
  frames: AsyncIterableIterator<SynthesisFrame, void>,
): AsyncIterableIterator<ProtoFrame, void> {
  const converted = (step: IteratorResult<SynthesisFrame, void>): IteratorResult<ProtoFrame, void> =>
    step.done ? step : { done: false, value: toProtoFrame(step.value) };
  const leave = async (): Promise<IteratorResult<ProtoFrame, void>> => {
    await frames.return?.();
    return { done: true, value: undefined };
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => frames.next().then(converted),
    return: leave,
    async throw(thrown) {
      await leave();
      throw thrown;
    },
  };
}

/** A frame as it travels. */
export function toProtoFrame(frame: SynthesisFrame): ProtoFrame {
  if (frame.kind === "audio") return { frame: { case: "audio", value: frame.bytes } };
  if (frame.kind === "finished") {
    const { inputCharacters, promptTokens, completionTokens, costNanoUsd } = frame;
    const value = { inputCharacters, promptTokens, completionTokens, costNanoUsd };
    return { frame: { case: "finished", value } };
  }
  const { endpoint } = frame;
  return {
    frame: {
      case: "started",
      value: {
        generationId: frame.generationId,
        format: toProtoAudioFormat(frame.format),
        sampleRateHz: frame.sampleRateHz,
        channels: frame.channels,
        endpoint: {
          endpointId: endpoint.id,
          model: endpoint.model,
          modelPermaslug: endpoint.permaslug,
          providerSlug: endpoint.providerSlug,
          providerName: endpoint.providerName,
        },
        ignoredParameters: [...frame.ignoredParameters],
      },
    },
  };
}
