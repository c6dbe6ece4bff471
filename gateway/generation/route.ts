import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import Type from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, GenerationEventSchema, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { apiPath } from "../docs/openapi.ts";
import { jsonAnswer, type RouteDocument } from "../docs/route-document.ts";
import type { Exchange } from "../http/exchange.ts";
import { readQuery } from "../http/query.ts";
import type { Route } from "../http/route.ts";
import { serviceRoute } from "../http/service-route.ts";
import { generationAnswerSchema, toGenerationAnswer } from "./record.ts";

/** What the routes of generations ask. */
export interface GenerationDependencies {
  usage: Client<typeof UsageService>;
}

/** What every generation's id looks like; the service need not be asked about others. */
const idPattern = /^[\x21-\x7e]{1,64}$/;

const exampleStartMs = Date.UTC(2030, 0, 31, 12);
const exampleEndpoint = {
  endpointId: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10",
  providerSlug: "acme",
  providerName: "Acme",
};

/** A generation for the document. */
export const exampleEvent = create(GenerationEventSchema, {
  ...exampleEndpoint,
  eventId: "gen-tts-01JJX5V0Q2",
  revision: 1,
  requestId: "req-7f6f5a52-60a7-4d8c-8a53-0c6c1bb4f5fd",
  accountId: "6f1f1c0e-52ad-4b52-9d57-6c1de19f7a7b",
  api: Api.SPEECH,
  model: "author/model",
  modelPermaslug: "author/model-2030-01-01",
  costNanoUsd: 15_000n,
  listPriceNanoUsd: 15_000n,
  startedAt: timestampFromMs(exampleStartMs),
  firstByteAt: timestampFromMs(exampleStartMs + 210),
  endedAt: timestampFromMs(exampleStartMs + 900),
  streamed: true,
  keyHash: "ab".repeat(32),
  keyName: "Website",
  units: { inputCharacters: 1000n, outputAudioMs: 61_000n },
  outcome: Outcome.SUCCEEDED,
  attempts: [
    {
      ...exampleEndpoint,
      outcome: Outcome.SUCCEEDED,
      startedAt: timestampFromMs(exampleStartMs + 5),
      providerStatus: 200,
      firstByteMs: 205n,
      durationMs: 890n,
    },
  ],
});

const document: RouteDocument = {
  id: "getGeneration",
  tag: "Usage",
  summary: "One generation",
  description:
    "What became of a request that reached a provider: every attempt, how long it took, what it cost. For any key of the account that made it.",
  parameters: [
    {
      name: "id",
      in: "query",
      description:
        "The X-Generation-Id of its answer: at most 64 visible ASCII characters, or none is found.",
      schema: Type.String({ minLength: 1 }),
      required: true,
    },
  ],
  answer: jsonAnswer(
    "The generation.",
    "Generation",
    generationAnswerSchema,
    toGenerationAnswer(exampleEvent),
  ),
  errors: [404],
};

/** GET /api/v1/generation: the record of one generation of the account. */
export function generationRoute({ usage }: GenerationDependencies): Route {
  return serviceRoute({
    method: "GET",
    path: `${apiPath}/generation`,
    access: "any",
    document,
    request: namedGeneration,
    call: usage.getGeneration,
    answer: ({ event }) => toGenerationAnswer(event),
  });
}

/** The generation that the query names. Throws record_unknown for what is no id. */
function namedGeneration(exchange: Exchange): { generationId: string } {
  const generationId = readQuery(exchange, (query) => {
    const id = query.text("id") ?? "";
    if (id === "") query.addIssue("id", "is required");
    return id;
  });
  if (!idPattern.test(generationId)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such generation");
  return { generationId };
}
