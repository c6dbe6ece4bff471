import { beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Api, type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { generationEvent } from "../../test/fakes/fake-usage.ts";
import { errorOf, testKeys } from "../../test/support/services/gateway-server.ts";
import { PlayedGateway } from "../../test/support/services/played-gateway.ts";

let events: Map<string, GenerationEvent>;

const gateway = new PlayedGateway<{ generationId: string }>((answer) => ({
  usageHandlers: {
    getGeneration: answer(({ generationId }) => {
      const event = events.get(generationId);
      if (event === undefined) throw new DomainError(ErrorReason.RECORD_UNKNOWN, "no such generation");
      return { event };
    }),
  },
}));
const { asked } = gateway;

beforeEach(() => {
  events = new Map([["gen-img-1", generationEvent()]]);
});

function get(query: string, key: string = testKeys.speech): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` };
  return fetch(`${gateway.server.baseUrl}/api/v1/generation${query}`, { headers });
}

async function recordOf(event: GenerationEvent): Promise<Record<string, unknown>> {
  events.set(event.eventId, event);
  const response = await get(`?id=${event.eventId}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: Record<string, unknown> }).data;
}

/** What clients read and this system does not know. */
const unknown = {
  app_id: null,
  cache_discount: null,
  http_referer: null,
  moderation_latency: null,
  native_finish_reason: null,
  num_fetches: null,
  num_input_audio_prompt: null,
  num_search_results: null,
  origin: "",
  preset_id: null,
  response_cache_source_id: null,
  router: null,
  service_tier: null,
  upstream_id: null,
  user_agent: null,
  web_search_engine: null,
};

/** The generation of the fixture, as every key of the account sees it. */
const shown = {
  id: "gen-img-1",
  api_type: "image",
  model: "acme/brush",
  model_permaslug: "acme/brush-2030-01-01",
  endpoint_id: "endpoint-2",
  provider_name: "Acme",
  provider_responses: [
    {
      endpoint_id: "endpoint-1",
      provider_name: "Acme",
      status: 529,
      created_at: null,
      latency: 100,
      first_byte_latency: null,
      is_byok: true,
      outcome: "failed",
      reason: "provider_overloaded",
    },
    {
      endpoint_id: "endpoint-2",
      provider_name: "Acme",
      status: null,
      created_at: "2030-01-31T12:00:00.110Z",
      latency: 1380,
      first_byte_latency: 290,
      is_byok: false,
      outcome: "succeeded",
      reason: null,
    },
  ],
  outcome: "succeeded",
  reason: null,
  finish_reason: "stop",
  streamed: true,
  cancelled: false,
  created_at: "2030-01-31T12:00:00.000Z",
  ended_at: "2030-01-31T12:00:01.500Z",
  latency: 1500,
  first_byte_latency: 400,
  generation_time: 1380,
  tokens_prompt: 20,
  tokens_completion: 7,
  native_tokens_prompt: 20,
  native_tokens_completion: 7,
  native_tokens_reasoning: 2,
  native_tokens_cached: 3,
  native_tokens_completion_images: 5,
  num_media_prompt: 1,
  num_media_completion: 2,
  units: { input_characters: 0, output_audio_ms: 0, output_images: 2, output_pixels: 0, input_images: 1 },
  usage: 0.080000001,
  total_cost: 0.080000001,
  upstream_inference_cost: 0,
  list_price: 0.080000001,
  is_byok: false,
  external_user: "user-1",
  session_id: "session-1",
  request_id: "req-1",
  workspace_id: "account-1",
  data_region: "global",
  ...unknown,
};

describe("a generation", () => {
  test.for([testKeys.speech, testKeys.images, testKeys.management])(
    "is shown whole to any key: %s",
    async (key) => {
      const response = await get("?id=gen-img-1", key);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toEqual({ data: shown });
    },
  );

  test("of speech by an own key costs the fee and names the list price", async () => {
    const event = generationEvent({
      eventId: "gen-tts-1",
      api: Api.SPEECH,
      byok: true,
      costNanoUsd: 50n,
      listPriceNanoUsd: 1000n,
      tokens: undefined,
      units: undefined,
      endUser: "",
      sessionId: "",
    });
    expect(await recordOf(event)).toMatchObject({
      api_type: "tts",
      is_byok: true,
      usage: 5e-8,
      total_cost: 5e-8,
      upstream_inference_cost: 0.000001,
      tokens_prompt: 0,
      native_tokens_cached: 0,
      num_media_prompt: 0,
      num_media_completion: 1,
      external_user: null,
      session_id: null,
    });
    const silent = { ...event, firstByteAt: undefined };
    expect(await recordOf(generationEvent(silent))).toMatchObject({
      num_media_completion: 0,
      first_byte_latency: null,
    });
  });

  test("that is lost has no times and no attempts", async () => {
    const event = generationEvent({
      outcome: Outcome.LOST,
      reason: "lost",
      revision: 0,
      firstByteAt: undefined,
      attempts: [],
      costNanoUsd: 0n,
      providerName: "",
      endpointId: "",
      modelPermaslug: "",
    });
    expect(await recordOf(event)).toMatchObject({
      outcome: "lost",
      finish_reason: "error",
      latency: null,
      first_byte_latency: null,
      generation_time: null,
      provider_responses: [],
      provider_name: null,
      endpoint_id: null,
      model_permaslug: null,
      usage: 0,
    });
  });

  test.for([
    [Outcome.FAILED, "content_policy", "failed", "content_filter"],
    [Outcome.FAILED, "provider_failed", "failed", "error"],
    [Outcome.CANCELLED, "cancelled", "cancelled", null],
    [99 as Outcome, "", "lost", "error"],
  ] as const)("with outcome %s and reason %s", async ([outcome, reason, word, finish]) => {
    const record = await recordOf(generationEvent({ outcome, reason, api: 99 as Api }));
    expect(record).toMatchObject({
      outcome: word,
      reason: reason === "" ? null : reason,
      finish_reason: finish,
      api_type: null,
    });
  });
});

describe("a generation is not found", () => {
  test.for(["gen-none", "x".repeat(64)])("by an id that nobody has: %s", async (id) => {
    const response = await get(`?id=${id}`);
    expect(await errorOf(response)).toEqual({ status: 404, reason: "record_unknown" });
    expect(asked).toMatchObject([{ generationId: id }]);
  });

  test.for(["x".repeat(65), "a%20b", "%00", "g%C3%BCn", "a%0a"])(
    "by what can't be an id, and the service is not asked: %s",
    async (id) => {
      expect(await errorOf(await get(`?id=${id}`))).toEqual({ status: 404, reason: "record_unknown" });
      expect(asked).toEqual([]);
    },
  );

  test.for(["", "?", "?id=", "?ID=gen-img-1", "?id=a&id=b"])("without one id: %s", async (query) => {
    const response = await get(query);
    expect(await response.clone().json()).toMatchObject({
      error: { message: "Invalid request parameters", metadata: { issues: [{ path: "id" }] } },
    });
    expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
    expect(asked).toEqual([]);
  });
});
