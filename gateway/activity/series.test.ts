import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { SeriesGroup, SeriesStep } from "../../gen/media/usage/v1/usage_pb.ts";
import { seriesPoint } from "../../test/fakes/fake-usage.ts";
import { errorOf, testKeys } from "../../test/support/services/gateway-server.ts";
import { PlayedGateway } from "../../test/support/services/played-gateway.ts";

const gateway = new PlayedGateway((answer) => ({
  usageHandlers: {
    listActivitySeries: answer(() => ({
      points: [seriesPoint(), seriesPoint({ group: "" })],
      firstByteBoundsMs: [100n],
    })),
  },
}));
const { asked } = gateway;

function get(query: string): Promise<Response> {
  const headers = { authorization: `Bearer ${testKeys.management}` };
  return fetch(`${gateway.server.baseUrl}/api/v1/activity/series${query}`, { headers });
}

test("a series is shown in the names and units of the interface", async () => {
  const point = {
    starts_at: "2030-01-31T12:00:00.000Z",
    group: "acme/voice",
    requests: 3,
    errors: 1,
    prompt_tokens: 20,
    completion_tokens: 5,
    reasoning_tokens: 2,
    cached_tokens: 4,
    usage: 0.001234567,
    byok_usage_inference: 1e-9,
    first_byte_counts: [1, 2],
  };
  expect(await (await get("?step=hour")).json()).toEqual({
    data: [point, { ...point, group: null }],
    first_byte_bounds_ms: [100],
  });
  expect(asked).toMatchObject([{ step: SeriesStep.HOUR, groupBy: SeriesGroup.UNSPECIFIED }]);
});

test.for([
  ["model", SeriesGroup.MODEL],
  ["provider", SeriesGroup.PROVIDER],
  ["key", SeriesGroup.KEY],
  ["member", SeriesGroup.MEMBER],
] as const)("it is asked for by step, span and %s", async ([word, groupBy]) => {
  const span = "from=2030-01-30T00:00:00Z&to=2030-01-31T00:00:00Z";
  expect((await get(`?step=day&group_by=${word}&${span}`)).status).toBe(200);
  const [from, to] = [30, 31].map((day) => timestampFromMs(Date.UTC(2030, 0, day)));
  expect(asked).toMatchObject([{ step: SeriesStep.DAY, groupBy, from, to }]);
});

test.for([
  ["", ["step"]],
  ["?step=week", ["step"]],
  ["?step=day&group_by=endpoint", ["group_by"]],
  ["?step=day&from=2030-01-31&to=now", ["from", "to"]],
] as const)("%j is refused", async ([query, paths]) => {
  const response = await get(query);
  const { error } = (await response.clone().json()) as {
    error: { metadata: { issues: { path: string }[] } };
  };
  expect(error.metadata.issues.map(({ path }) => path)).toEqual(paths);
  expect(await errorOf(response)).toEqual({ status: 400, reason: "invalid_body" });
  expect(asked).toEqual([]);
});
