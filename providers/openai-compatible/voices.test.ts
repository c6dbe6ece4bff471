import { afterAll, beforeAll, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { type StandIn, startStandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";
import { createVoiceList } from "./voices.ts";

let upstream: StandIn;
let body: unknown;
let status = 200;
const http = createOutboundHttp();
const { signal } = new AbortController();

beforeAll(async () => {
  upstream = await startStandIn((_, answer) =>
    answer.send(status, { "content-type": "application/json" }, JSON.stringify(body)),
  );
});
afterAll(async () => {
  await http.close();
  await upstream.close();
});

function list(answer: unknown) {
  body = answer;
  const connection = { baseUrl: upstream.baseUrl, apiKey: "k" };
  return createVoiceList({ http, path: "/v1/voices", query: { model: "x" } })("one", { connection, signal });
}

const [ann, bob] = [
  { id: "ann", name: "" },
  { id: "bob", name: "" },
];

test.for<[unknown, unknown]>([
  [{ voices: ["ann", "bob"], object: "list" }, [ann, bob]],
  [
    {
      voices: [
        { id: "ann", name: "Ann" },
        { id: "bob", name: "bob" },
      ],
    },
    [{ id: "ann", name: "Ann" }, bob],
  ],
  [{ data: [{ id: "ann" }, { voice_id: "bob" }] }, [ann, bob]],
  [{ voices: [{ name: "ann" }] }, [ann]],
  [
    {
      voices: [
        { id: "eve", model: "two" },
        { id: "ann", model: "one" },
      ],
    },
    [ann],
  ],
  [
    {
      data: [
        { model: "two", voices: [{ id: "1", name: "eve" }] },
        { model: "one", voices: [{ id: "2", name: "ann" }, { id: "3" }] },
      ],
    },
    [ann],
  ],
  [{ voices: ["ann", "ann", "", 7, null, {}, "x".repeat(201)] }, [ann]],
  [{ voices: {} }, []],
  [{}, []],
])("%j lists %j", async ([answer, voices]) => {
  expect(await list(answer)).toEqual(voices);
  expect(upstream.requests.at(-1)).toMatchObject({ method: "GET", path: "/v1/voices?model=x" });
  expect(upstream.requests.at(-1)?.headers.authorization).toBe("Bearer k");
});

test("at most a thousand", async () => {
  const voices = Array.from({ length: 1200 }, (_, index) => `voice-${index}`);
  expect(await list({ voices })).toHaveLength(1000);
});

test("a refusal or another answer throws", async () => {
  await expect(list(["ann"])).rejects.toMatchObject({ kind: "bad_answer" });
  status = 404;
  await expect(list({})).rejects.toMatchObject({ kind: "invalid_request", status: 404 });
});
