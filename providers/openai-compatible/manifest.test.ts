import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import { imageOf, speechOf } from "../../test/upstreams/compatible/compatible.ts";
import { type StandIn, startStandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";
import { attempt } from "../adapter.suite.ts";
import type { ImageCall, SpeechCall } from "../contract.ts";
import { type CompatibleProvider, createCompatibleManifest } from "./manifest.ts";

let upstream: StandIn;
const http = createOutboundHttp();

beforeAll(async () => {
  const b64_json = (await imageOf("64x64")).toString("base64");
  upstream = await startStandIn(({ path }, answer) =>
    path.includes("images")
      ? answer.send(200, { "content-type": "application/json" }, JSON.stringify({ data: [{ b64_json }] }))
      : answer.send(200, { "content-type": "audio/mpeg" }, speechOf.mp3.toString("latin1")),
  );
});
afterAll(async () => {
  await http.close();
  await upstream.close();
});

const plain: CompatibleProvider = {
  slug: "acme",
  baseUrl: "http://acme.example/",
  network: { privateAddress: true },
  auth: "bearer",
  keyIsOptional: false,
  headers: {},
  query: {},
  paths: {},
  edits: "multipart",
  settings: {},
};

const speech: SpeechCall = {
  upstreamModel: "one",
  input: "Words.",
  voice: "",
  format: "mp3",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

/** What such a provider sends for a call. */
async function sent(provider: Partial<CompatibleProvider>, call: Partial<SpeechCall> = {}, apiKey = "k") {
  const { speech: adapter } = await createCompatibleManifest({ ...plain, ...provider }).create({
    http,
    fetchResult: noResults,
  });
  const baseUrl = new URL(new URL(provider.baseUrl ?? plain.baseUrl).pathname, upstream.baseUrl).href;
  const answer = await adapter?.synthesize(
    { ...speech, ...call },
    attempt({ baseUrl: baseUrl.replace(/\/$/, ""), apiKey }).context,
  );
  await Array.fromAsync(answer?.audio ?? []);
  const request = upstream.requests.at(-1);
  if (request === undefined) throw new Error("nothing was sent");
  return request;
}

describe("a key", () => {
  test.for<[CompatibleProvider["auth"], Record<string, string>]>([
    ["bearer", { authorization: "Bearer user:word" }],
    ["basic", { authorization: `Basic ${Buffer.from("user:word").toString("base64")}` }],
    [{ header: "Api-Key" }, { "api-key": "user:word" }],
    [{ header: "Authorization", scheme: "Key" }, { authorization: "Key user:word" }],
  ])("goes as %o", async ([auth, headers]) => {
    expect((await sent({ auth }, {}, "user:word")).headers).toMatchObject(headers);
  });

  test.for<CompatibleProvider["auth"]>(["bearer", "basic", "none", { header: "authorization" }])(
    "that is not there is not sent: %o",
    async (auth) => {
      expect((await sent({ auth }, {}, "")).headers).not.toHaveProperty("authorization");
    },
  );

  test.for<[Partial<CompatibleProvider>, boolean, boolean]>([
    [{ auth: "bearer" }, true, true],
    [{ auth: "bearer", keyIsOptional: true }, false, true],
    [{ auth: "none" }, false, false],
  ])("is needed or taken: %o", ([provider, needsKey, takesKey]) => {
    const manifest = createCompatibleManifest({ ...plain, ...provider });
    expect(manifest).toMatchObject({ needsKey, takesKey, defaultBaseUrl: "http://acme.example" });
  });
});

describe("a request", () => {
  test.for<[Partial<CompatibleProvider>, string]>([
    [{}, "/v1/audio/speech"],
    [{ baseUrl: "http://acme.example/api/v1" }, "/api/v1/audio/speech"],
    [{ query: { "api-version": "2025-04-01", x: "a b" } }, "/v1/audio/speech?api-version=2025-04-01&x=a+b"],
    [{ paths: { speech: "/deployments/{model}/say" } }, "/deployments/one/say"],
  ])("of %o goes to %s", async ([provider, path]) => {
    expect((await sent(provider)).path).toBe(path);
  });

  test("of a model with a slash stays below its path", async () => {
    const { path } = await sent({ paths: { speech: "/d/{model}/say" } }, { upstreamModel: "a/../b?c" });
    expect(path).toBe("/d/a%2F..%2Fb%3Fc/say");
  });

  test("has the headers of all, and no voice where none was named", async () => {
    const { headers, json } = await sent({ headers: { "x-title": "Us" } });
    expect(headers).toMatchObject({ "x-title": "Us", authorization: "Bearer k" });
    expect(json).toEqual({ model: "one", input: "Words.", response_format: "mp3" });
  });

  test("has fixed fields of all, over them the endpoint's, over them the caller's, over them ours", async () => {
    const { json } = await sent(
      { settings: { body: { a: 1, b: 1, c: 1, model: "x" }, format_names: { mp3: "audio-mp3" } } },
      { settings: { body: { b: 2, c: 2, voice: "x" } }, options: { c: 3, input: "x" }, voice: "ann" },
    );
    expect(json).toEqual({
      a: 1,
      b: 2,
      c: 3,
      model: "one",
      input: "Words.",
      voice: "ann",
      response_format: "audio-mp3",
    });
  });
});

describe("references", () => {
  const image: ImageCall = {
    upstreamModel: "one",
    prompt: "A house.",
    n: 1,
    size: { width: 64, height: 64 },
    shape: { aspectRatio: "1:1", resolution: "1K" },
    quality: "auto",
    background: "auto",
    format: "png",
    compression: undefined,
    seed: undefined,
    references: [],
    stream: false,
    options: { image: "x", images: "x", input_references: "x", mask: "x" },
    settings: {},
  };
  const url = "data:image/png;base64,AQID";
  const reference = { bytes: Uint8Array.of(1, 2, 3), mediaType: "image/png" } as const;

  async function drawn(provider: Partial<CompatibleProvider>, call: Partial<ImageCall>) {
    const { image: adapter } = await createCompatibleManifest({ ...plain, ...provider }).create({
      http,
      fetchResult: noResults,
    });
    const { context } = attempt({ baseUrl: upstream.baseUrl, apiKey: "k" });
    await Array.fromAsync((await adapter?.generate({ ...image, ...call }, context))?.output ?? []);
    const { path = "", json } = upstream.requests.at(-1) ?? {};
    return { path, body: json as Record<string, unknown> };
  }

  test.for<[CompatibleProvider["edits"], number, string, object]>([
    ["image", 1, "/v1/images/generations", { image: url }],
    ["image", 2, "/v1/images/generations", { image: [url, url] }],
    ["image_url", 2, "/v1/images/edits", { images: [{ image_url: url }, { image_url: url }] }],
    [
      "input_references",
      1,
      "/v1/images/generations",
      { input_references: [{ type: "image_url", image_url: { url } }] },
    ],
  ])("of the shape %s: %d", async ([edits, count, path, members]) => {
    const references = Array.from({ length: count }, () => reference);
    const got = await drawn({ edits }, { references });
    expect(got).toEqual({
      path,
      body: { model: "one", prompt: "A house.", n: 1, size: "64x64", output_format: "png", ...members },
    });
  });

  test("have a mask beside them where the shape has one, and a path of their own where one is given", async () => {
    const got = await drawn(
      { edits: "image_url", paths: { edits: "/v2/images/mend" } },
      { references: [reference], mask: reference },
    );
    expect(got).toMatchObject({ path: "/v2/images/mend", body: { mask: { image_url: url } } });
  });

  test.for<[string, object]>([
    ["pixels", { size: "64x64" }],
    ["ratio", { aspect_ratio: "1:1", resolution: "1K" }],
    ["none", {}],
  ])("and sizes are told as %s", async ([size_as, members]) => {
    const { body } = await drawn({ settings: { size_as } }, {});
    expect(body).toEqual({ model: "one", prompt: "A house.", n: 1, output_format: "png", ...members });
  });
});
