import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { ProviderStateSchema } from "../../gen/media/routing/v1/provider_state_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { imageModelFixture, speechModelFixture } from "../../test/fakes/model-fixtures.ts";
import {
  errorOf,
  type GatewayServer,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";

let gateway: GatewayServer;
let failure: Error | undefined;
let asked: string[] = [];
let states: { speech?: ProviderStates; image?: ProviderStates } = {};

type ProviderStates = MessageInitShape<typeof ProviderStateSchema>[];

const acme = { slug: "acme", name: "Acme", on: true, takesOwnKeys: true, switchVariable: "ACME_API_KEY" };

function statesOf(medium: "speech" | "image"): ProviderStates {
  asked.push(medium);
  if (failure !== undefined) throw failure;
  return states[medium] ?? [];
}

beforeAll(async () => {
  const answer = <T>(medium: string, models: T[]) => {
    asked.push(medium);
    if (failure !== undefined) throw failure;
    return { models };
  };
  gateway = await startGatewayServer({
    handlers: {
      listSpeechModels: () => answer("speech", [speechModelFixture]),
      listSpeechProviders: () => ({ providers: statesOf("speech") }),
    },
    imageHandlers: {
      listImageModels: () => answer("image", [imageModelFixture]),
      listImageProviders: () => ({ providers: statesOf("image") }),
    },
  });
});

beforeEach(() => {
  failure = undefined;
  asked = [];
  states = {};
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

function get(path: string, key: string = testKeys.management): Promise<Response> {
  return fetch(`${gateway.baseUrl}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
}

async function idsOf(response: Response): Promise<string[]> {
  return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
}

const paths = [
  "/models",
  "/models/user",
  "/models/count",
  "/model/acme/voice",
  "/models/acme/brush/endpoints",
  "/providers",
  "/images/models",
  "/images/models/acme/brush/endpoints",
] as const;

describe.for(paths)("GET %s", (path) => {
  test.for([testKeys.speech, testKeys.images, testKeys.management])("is open to any key: %s", async (key) => {
    const response = await get(path, key);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    await response.text();
  });

  test("needs a key", async () => {
    expect(await errorOf(await get(path, testKeys.unknown))).toEqual({ status: 401, reason: "key_unknown" });
    const bare = await fetch(`${gateway.baseUrl}/api/v1${path}`);
    expect(await errorOf(bare)).toEqual({ status: 401, reason: "key_missing" });
    expect(asked).toEqual([]);
  });

  test.for([
    [ErrorReason.SERVICE_UNAVAILABLE, "service_unavailable"],
    [ErrorReason.KEY_UNKNOWN, "internal"],
    [ErrorReason.TIMED_OUT, "timed_out"],
  ] as const)("answers 500 when a service fails with %s", async ([reason, word]) => {
    failure = new DomainError(reason, "away");
    expect(await errorOf(await get(path))).toEqual({ status: 500, reason: word });
  });
});

describe("the filter by output_modalities", () => {
  test.for([
    ["", ["acme/brush", "acme/voice"], ["speech", "image"]],
    ["?other=1", ["acme/brush", "acme/voice"], ["speech", "image"]],
    ["?output_modalities=speech", ["acme/voice"], ["speech"]],
    ["?output_modalities=image", ["acme/brush"], ["image"]],
    ["?output_modalities=image,speech", ["acme/brush", "acme/voice"], ["speech", "image"]],
    ["?output_modalities=image&output_modalities=speech", ["acme/brush", "acme/voice"], ["speech", "image"]],
    ["?output_modalities=speech%2C%20speech", ["acme/voice"], ["speech"]],
    ["?output_modalities=all", ["acme/brush", "acme/voice"], ["speech", "image"]],
    ["?output_modalities=text,image", ["acme/brush"], ["image"]],
    ["?output_modalities=text,embeddings", [], []],
  ] as const)("%s", async ([query, ids, media]) => {
    expect(await idsOf(await get(`/models${query}`))).toEqual(ids);
    expect(asked).toEqual(media);
    expect(await (await get(`/models/count${query}`)).json()).toEqual({ data: { count: ids.length } });
  });

  test.for([
    "?output_modalities=",
    "?output_modalities=texts",
    "?output_modalities=speech,",
    "?output_modalities=Image",
  ])("refuses %s", async (query) => {
    const response = await get(`/models${query}`);
    expect(await response.clone().json()).toMatchObject({
      error: { metadata: { issues: [{ path: "output_modalities" }] } },
    });
    expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
    expect(asked).toEqual([]);
  });
});

describe("the list of models", () => {
  test.for([
    ["?q=VOI", ["acme/voice"]],
    ["?q=Brush", ["acme/brush"]],
    ["?q=none", []],
    ["?input_modalities=image", ["acme/brush"]],
    ["?input_modalities=image,text", ["acme/brush", "acme/voice"]],
    ["?supported_parameters=speed", ["acme/voice"]],
    ["?supported_parameters=voice,seed", []],
    ["?model_authors=other,acme&providers=acme", ["acme/brush", "acme/voice"]],
    ["?providers=other", []],
    ["?limit=1", ["acme/brush"]],
    ["?limit=1&offset=1", ["acme/voice"]],
    ["?offset=2", []],
    ["?category=programming&sort=newest&zdr=true", ["acme/brush", "acme/voice"]],
  ] as const)("is filtered and cut by %s", async ([query, ids]) => {
    expect(await idsOf(await get(`/models${query}`))).toEqual(ids);
    expect(await idsOf(await get(`/models/user${query}`))).toEqual(ids);
  });

  test("leads from page to page", async () => {
    const read = async (path: string) =>
      (await (await fetch(new URL(path, gateway.baseUrl), { headers })).json()) as {
        total_count: number;
        links: { next: string | null };
      };
    const headers = { authorization: `Bearer ${testKeys.images}` };
    const first = await read("/api/v1/models?limit=1&q=acme");
    expect(first).toMatchObject({ total_count: 2, data: [{ id: "acme/brush" }] });
    const second = await read(first.links.next ?? "");
    expect(second).toMatchObject({ total_count: 2, data: [{ id: "acme/voice" }], links: { next: null } });
    expect((await read("/api/v1/models")).links.next).toBeNull();
  });

  test.for([
    ["?limit=0", "limit"],
    ["?limit=x", "limit"],
    ["?offset=-1", "offset"],
    ["?offset=1&offset=2", "offset"],
    ["?q=", "q"],
  ] as const)("is refused for %s", async ([query, path]) => {
    const response = await get(`/models${query}`);
    expect(await response.clone().json()).toMatchObject({ error: { metadata: { issues: [{ path }] } } });
    expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
  });
});

describe("one model", () => {
  test.for(["acme/brush", "acme/voice"])("is shown as in the list: %s", async (id) => {
    const { data } = (await (await get("/models")).json()) as { data: { id: string }[] };
    const listed = data.find((model) => model.id === id);
    expect(await (await get(`/model/${id}`)).json()).toEqual({ data: listed });
  });

  test.for([
    ["acme/voice", ["voice", "response_format", "speed"], { prompt: "0.000015" }, "text->speech"],
    ["acme/brush", ["aspect_ratio", "n", "seed"], { image: "0.04" }, "text+image->image"],
  ] as const)("has endpoints where the list says: %s", async ([id, parameters, pricing, modality]) => {
    const model = (await (await get(`/model/${id}`)).json()) as { data: { links: { details: string } } };
    const response = await fetch(new URL(model.data.links.details, gateway.baseUrl), {
      headers: { authorization: `Bearer ${testKeys.speech}` },
    });
    expect(await response.json()).toMatchObject({
      data: {
        id,
        created: 1_900_000_000,
        architecture: { modality, tokenizer: "Media" },
        endpoints: [
          {
            name: `Acme | ${id}-2030-01-01`,
            tag: "acme",
            provider_name: "Acme",
            model_id: id,
            supported_parameters: parameters,
            pricing,
            context_length: 0,
            uptime_last_30m: null,
          },
        ],
      },
    });
  });

  test.for(["/model/acme/none", "/models/acme/none/endpoints", "/model/acme%2Fvoice/x"])(
    "that is none: %s",
    async (path) => {
      expect(await errorOf(await get(path))).toEqual({ status: 404, reason: "model_unknown" });
    },
  );
});

describe("providers", () => {
  const untold = {
    privacy_policy_url: null,
    terms_of_service_url: null,
    status_page_url: null,
    headquarters: null,
    datacenters: null,
  };
  const at = (seconds: number) => ({ seconds: BigInt(seconds) });

  test("are listed once each, with what both media say of them", async () => {
    const speech = { models: 2, endpoints: 2, openBreakers: 1, ended: 8n, failed: 1n };
    const image = { models: 1, endpoints: 1, openBreakers: 0, ended: 2n, failed: 1n };
    states = {
      speech: [{ ...acme, ...speech, lastFailure: { kind: "timeout", at: at(1_900_000_000) } }],
      image: [
        { ...acme, slug: "aaa", name: "Triple", on: false },
        { ...acme, ...image, lastFailure: { kind: "upstream", at: at(1_900_000_060) } },
      ],
    };
    expect(await (await get("/providers")).json()).toEqual({
      data: [
        {
          slug: "aaa",
          name: "Triple",
          is_on: false,
          opened_by: "none",
          takes_own_keys: true,
          switched_on_by: "ACME_API_KEY",
          models: 0,
          health: { breaker: "closed", attempts: 0, error_share: null, last_error: null },
          ...untold,
        },
        {
          slug: "acme",
          name: "Acme",
          is_on: true,
          opened_by: "operator_key",
          takes_own_keys: true,
          switched_on_by: "ACME_API_KEY",
          models: 3,
          health: {
            breaker: "partly_open",
            attempts: 10,
            error_share: 0.2,
            last_error: { kind: "upstream", at: "2030-03-17T17:47:40.000Z" },
          },
          ...untold,
        },
      ],
    });
  });

  test.for([
    [{ on: true, ownKey: true }, "both"],
    [{ on: false, ownKey: true }, "own_key"],
    [{ on: true, takesOwnKeys: false, switchVariable: "" }, "no_key_needed"],
  ] as const)("say who opens them: %o", async ([more, word]) => {
    states = { speech: [{ ...acme, models: 1, endpoints: 1, openBreakers: 1, ...more }] };
    const { data } = (await (await get("/providers")).json()) as { data: object[] };
    expect(data).toMatchObject([{ is_on: true, opened_by: word, health: { breaker: "open" } }]);
  });
});

describe("image models", () => {
  test("show what can be set on them and where their endpoints are", async () => {
    const capabilities = {
      aspect_ratio: { type: "enum", values: ["1:1", "16:9"] },
      n: { type: "range", min: 1, max: 10 },
      seed: { type: "boolean" },
    };
    const list = (await (await get("/images/models")).json()) as { data: { endpoints: string }[] };
    expect(list).toEqual({
      data: [
        {
          id: "acme/brush",
          name: "Brush",
          description: "Draws.",
          created: 1_900_000_000,
          architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
          supported_parameters: capabilities,
          supports_streaming: true,
          endpoints: "/api/v1/images/models/acme/brush/endpoints",
        },
      ],
    });
    const response = await fetch(new URL(list.data[0]?.endpoints ?? "", gateway.baseUrl), {
      headers: { authorization: `Bearer ${testKeys.images}` },
    });
    expect(await response.json()).toEqual({
      id: "acme/brush",
      endpoints: [
        {
          provider_name: "Acme",
          provider_slug: "acme",
          provider_tag: null,
          supported_parameters: capabilities,
          allowed_passthrough_parameters: ["style"],
          supports_streaming: true,
          health: {
            breaker: "closed",
            attempts: 0,
            error_share: null,
            last_error: null,
            first_output_ms: null,
            units_per_second: null,
          },
          pricing: [
            { billable: "output_image", unit: "image", cost_usd: 0.04, variant: "high" },
            { billable: "input_text", unit: "token", cost_usd: 0.000005 },
          ],
        },
      ],
    });
  });

  test.for([
    "/images/models/acme/none/endpoints",
    "/images/models/acme/voice/endpoints",
    "/images/models/acme%2Fbrush/x/endpoints",
  ])("that are none: %s", async (path) => {
    expect(await errorOf(await get(path))).toEqual({ status: 404, reason: "model_unknown" });
  });

  test.for([
    "/images/models/acme/endpoints",
    "/images/models/acme/brush",
    "/images/models/acme/brush/endpoints/1",
  ])("have no route %s", async (path) => {
    expect(await errorOf(await get(path))).toEqual({ status: 404, reason: "route_unknown" });
  });

  test("who has a key and no model with a price serves nobody", async () => {
    states = { speech: [{ ...acme, on: true, models: 0, endpoints: 0, openBreakers: 0 }] };
    const { data } = (await (await get("/providers")).json()) as { data: object[] };
    expect(data).toMatchObject([{ is_on: false, opened_by: "operator_key", models: 0 }]);
  });
});
