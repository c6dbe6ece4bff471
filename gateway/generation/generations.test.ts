import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, expect, test } from "vitest";
import { type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { generationEvent } from "../../test/fakes/fake-usage.ts";
import { errorOf, testKeys } from "../../test/support/services/gateway-server.ts";
import { PlayedGateway } from "../../test/support/services/played-gateway.ts";

const hash = "0123456789abcdef".repeat(4);
let events: GenerationEvent[];
let nextPageToken: string;

const gateway = new PlayedGateway((answer) => ({
  usageHandlers: {
    listGenerations: answer(() => ({ events, nextPageToken })),
    getGeneration: () => ({ event: generationEvent() }),
  },
}));
const { asked } = gateway;

beforeEach(() => {
  events = [generationEvent()];
  nextPageToken = "";
});

function get(path: string): Promise<Response> {
  const headers = { authorization: `Bearer ${testKeys.management}` };
  return fetch(`${gateway.server.baseUrl}/api/v1${path}`, { headers });
}

test("a listed generation is what GET /generation shows, and who asked for it", async () => {
  const { data: shown } = (await (await get("/generation?id=gen-img-1")).json()) as { data: object };
  const listed = {
    ...shown,
    provider_slug: "acme",
    api_key_hash: "ab".repeat(32),
    api_key_name: "Website",
    user_id: "member-1",
  };
  expect(await (await get("/generations")).json()).toEqual({ data: [listed], next_cursor: null });
  nextPageToken = "123.gen-img-1";
  events = [generationEvent({ keyName: "", memberId: "", providerSlug: "" })];
  expect(await (await get("/generations")).json()).toMatchObject({
    data: [{ provider_slug: null, api_key_name: null, user_id: null }],
    next_cursor: nextPageToken,
  });
});

test("all filters are asked for", async () => {
  const filters = new URLSearchParams({
    from: "2030-01-31T12:00:00Z",
    to: "2030-01-31T13:00:00.5Z",
    model: "acme/brush",
    provider: "acme",
    api_key_hash: hash.toUpperCase(),
    outcome: "failed",
    user_id: "a-member",
    session_id: "a session",
    cursor: "1.gen-1",
    limit: "7",
  });
  expect((await get(`/generations?${filters}`)).status).toBe(200);
  expect(asked).toMatchObject([
    {
      from: timestampFromMs(Date.UTC(2030, 0, 31, 12)),
      to: timestampFromMs(Date.UTC(2030, 0, 31, 13, 0, 0, 500)),
      model: "acme/brush",
      provider: "acme",
      apiKeyHash: hash,
      outcome: Outcome.FAILED,
      memberId: "a-member",
      sessionId: "a session",
      pageToken: "1.gen-1",
      pageSize: 7,
    },
  ]);
});

test.for([
  ["from=yesterday", ["from"]],
  ["to=2030-01-31", ["to"]],
  ["model=", ["model"]],
  ["provider=a&provider=b", ["provider"]],
  ["api_key_hash=1", ["api_key_hash"]],
  ["outcome=unknown", ["outcome"]],
  ["outcome=Failed", ["outcome"]],
  ["user_id=", ["user_id"]],
  ["session_id=", ["session_id"]],
  ["cursor=", ["cursor"]],
  ["limit=0", ["limit"]],
  ["limit=-1&from=x", ["from", "limit"]],
] as const)("%s is refused", async ([query, paths]) => {
  const response = await get(`/generations?${query}`);
  const { error } = (await response.clone().json()) as {
    error: { metadata: { issues: { path: string }[] } };
  };
  expect(error.metadata.issues.map(({ path }) => path)).toEqual(paths);
  expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
  expect(asked).toEqual([]);
});

test("what the service refuses is reported in the interface's names", async () => {
  gateway.failure = DomainError.invalid(
    ["page_token", "page_size", "member_id"].map((path) => ({ path, message: "is wrong" })),
  );
  const { error } = (await (await get("/generations")).json()) as {
    error: { metadata: { issues: { path: string }[] } };
  };
  expect(error.metadata.issues.map(({ path }) => path)).toEqual(["cursor", "limit", "user_id"]);
});
