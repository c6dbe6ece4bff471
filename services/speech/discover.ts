import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SpeechModelSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import type {
  Catalog,
  SpeechCapabilities,
  SpeechEndpoint,
  SpeechModel,
  Voice,
} from "../../providers/catalog/catalog.ts";
import { toProtoHealth } from "../../providers/routing/provider-states.ts";
import { type HealthSources, seenHealth } from "../../providers/routing/seen-health.ts";
import { toProtoAudioFormat } from "./convert.ts";

/** The speech models of a catalogue as they travel, ordered by id. */
export function listSpeechModels(
  catalog: Catalog,
  seen: HealthSources,
): MessageInitShape<typeof SpeechModelSchema>[] {
  return catalog.speechModels().map((model) => toProtoSpeechModel(model, seen));
}

function toProtoSpeechModel(model: SpeechModel, seen: HealthSources) {
  const first = model.endpoints[0]?.speech;
  return {
    id: model.id,
    permaslug: model.permaslug,
    name: model.name,
    description: model.description,
    createdUnixS: BigInt(model.createdUnixS),
    voices: (first?.voices ?? []).map((voice) => toProtoVoice(voice, first)),
    defaultVoice: first?.defaultVoice ?? "",
    endpoints: model.endpoints.map((endpoint) => toProtoSpeechEndpoint(endpoint, seen)),
  };
}

function toProtoVoice(
  { id, name, language, gender, previewUrl = "" }: Voice,
  speech: SpeechCapabilities | undefined,
) {
  const aliases = [...(speech?.voiceAliases ?? [])]
    .filter(([, voice]) => voice === id)
    .map(([alias]) => alias);
  return { id, name, language, gender: gender ?? "", previewUrl, aliases };
}

function toProtoSpeechEndpoint(endpoint: SpeechEndpoint, seen: HealthSources) {
  const { id, providerSlug, providerName, speech, passthrough, prices } = endpoint;
  const hasSamples = speech.formats.some((format) => format !== "mp3");
  const formats = hasSamples ? (["mp3", "pcm"] as const) : (["mp3"] as const);
  return {
    endpointId: id,
    providerSlug,
    providerName,
    formats: formats.map(toProtoAudioFormat),
    maxInputCharacters: speech.maxInputCharacters,
    supportsSpeed: speech.speed !== undefined,
    supportsInstructions: speech.instructions,
    allowedPassthroughParameters: [...passthrough],
    health: toProtoHealth(seenHealth(endpoint, seen)),
    prices: prices.map(({ billable, nanoUsdPerMillion }) => ({ billable, nanoUsdPerMillion })),
  };
}
