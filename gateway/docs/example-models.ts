import type { Client } from "@connectrpc/connect";
import type { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import type { SpeechService } from "../../gen/media/speech/v1/speech_service_pb.ts";
import type { Clock } from "../../lib/runtime/clock.ts";

/** The models that examples of the OpenAPI document name: they work as they stand where the gateway serves any. */
export interface ExampleModels {
  readonly speech: { readonly model: string; readonly voice: string };
  readonly image: { readonly model: string };
}

interface ExampleModelsDependencies {
  speech: Client<typeof SpeechService>;
  image: Client<typeof ImageService>;
  clock: Clock;
}

/** What stands where a service has no model or can't be asked. */
const placeholders: ExampleModels = {
  speech: { model: "author/model", voice: "a-voice" },
  image: { model: "author/model" },
};

/** How long an answer holds: whoever reads the document, without a key, makes no more calls than this. */
const freshMs = 10_000;
const timeoutMs = 2_000;

/** Finds the first model of each medium that its service lists, in the catalogue's order; never rejects. */
export function createExampleModels(dependencies: ExampleModelsDependencies): () => Promise<ExampleModels> {
  const { clock } = dependencies;
  let asked: { readonly atMs: number; readonly models: Promise<ExampleModels> } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (asked === undefined || nowMs - asked.atMs >= freshMs) {
      asked = { atMs: nowMs, models: ask(dependencies) };
    }
    return asked.models;
  };
}

async function ask({ speech, image }: ExampleModelsDependencies): Promise<ExampleModels> {
  const [speeches, images] = await Promise.allSettled([
    speech.listSpeechModels({}, { timeoutMs }),
    image.listImageModels({}, { timeoutMs }),
  ]);
  const [voiced] = speeches.status === "fulfilled" ? speeches.value.models : [];
  const [drawn] = images.status === "fulfilled" ? images.value.models : [];
  return {
    speech: voiced === undefined ? placeholders.speech : toSpeechExample(voiced),
    image: drawn === undefined ? placeholders.image : { model: drawn.id },
  };
}

function toSpeechExample(model: {
  readonly id: string;
  readonly defaultVoice: string;
  readonly voices: readonly { readonly id: string }[];
}): ExampleModels["speech"] {
  const voice = model.defaultVoice || model.voices[0]?.id;
  return { model: model.id, voice: voice ?? placeholders.speech.voice };
}
