import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import {
  type RecraftBehaviour,
  type RecraftUpstream,
  startRecraftUpstream,
} from "../../test/upstreams/recraft.ts";
import { attempt } from "../adapter.suite.ts";
import type { ImageCall, ImageFormat, ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { recraft } from "./index.ts";

const apiKey = "recraft-the-right-one";
const prompt = "A picture nobody else may know of.";
const callOf = (upstreamModel: string, format: ImageFormat): ImageCall => ({
  upstreamModel,
  prompt,
  n: 1,
  size: { width: 1344, height: 768 },
  quality: "auto",
  background: "auto",
  format,
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: { response_format: "b64_json" },
});

let http: OutboundHttp;
let upstream: RecraftUpstream;
beforeAll(async () => {
  http = createOutboundHttp();
  upstream = await startRecraftUpstream({ apiKey });
});
afterAll(async () => {
  await Promise.all([http.close(), upstream.close()]);
});

async function adapter() {
  const { image } = await recraft.create({ http, fetchResult: noResults });
  if (image === undefined) throw new Error("no images");
  return image;
}

interface Setup extends ImageProviderSetup {
  readonly upstream: RecraftUpstream;
}

const setupOf = (call: ImageCall) => async (): Promise<Setup> => {
  const own = await startRecraftUpstream({ apiKey });
  return {
    upstream: own,
    adapter: await adapter(),
    connection: { baseUrl: own.baseUrl, apiKey },
    call,
    severalCall: { ...call, n: 3 },
    running: () => own.requests.filter(({ fate }) => fate === "open").length,
    close: () => own.close(),
  };
};

function failure(
  name: string,
  kind: ProviderErrorKind,
  status: number,
  refusal: RecraftBehaviour["refusal"],
): ImageFailure<Setup> {
  const provoke = ({ upstream: own }: Setup) => {
    own.next({ ...(refusal !== undefined && { refusal }) });
    return undefined;
  };
  return { name, kind, status, provoke };
}

const said = `${apiKey} may not say: ${prompt}`;
const text = "text/plain";

describeImageProvider("Recraft's vectors", setupOf(callOf("recraftv4_1_vector", "svg")));
describeImageProvider("Recraft's images", setupOf(callOf("recraftv4_1", "webp")), [
  failure("a refusal", "invalid_request", 400, { status: 400, body: { code: "x", message: said } }),
  failure("no units", "credentials", 400, {
    status: 400,
    body: { code: "not_enough_credits", message: said },
  }),
  failure("no units by status", "credentials", 402, { status: 402, body: said, contentType: text }),
  failure("a limit", "overloaded", 429, { status: 429, body: said, contentType: text }),
  failure("a broken upstream", "upstream", 500, { status: 500, body: said, contentType: text }),
  failure("no images", "bad_answer", 200, { status: 200, body: { created: 1, credits: 0, data: [] } }),
  failure("images by address only", "bad_answer", 200, {
    status: 200,
    body: { data: [{ url: "https://a.test" }] },
  }),
  {
    name: "a wrong key, refused in plain text",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 400,
    provoke: ({ call }) => ({ call: { ...call, upstreamModel: "recraftv9" } }),
  },
]);

async function draw(changes: Partial<ImageCall>, behaviour?: RecraftBehaviour) {
  if (behaviour !== undefined) upstream.next(behaviour);
  const { context } = attempt({ baseUrl: `${upstream.baseUrl}/v1`, apiKey });
  const call = { ...callOf("recraftv4_1_vector", "svg"), ...changes };
  const answer = await (await adapter()).generate(call, context);
  return { output: await Array.fromAsync(answer.output), report: answer.report() };
}

describe("a request", () => {
  test("is reported at what the vendor says that it cost, if it does", async () => {
    expect((await draw({ n: 2 })).report).toEqual({ costUsd: 0.16 });
    const b64_json = Buffer.from("<svg/>").toString("base64");
    const silent = { refusal: { status: 200, body: { data: [{ b64_json }] } } };
    expect((await draw({}, silent)).report).toEqual({});
  });

  test("has the older parameters, and is not changed by options that name what is ours", async () => {
    const ours = ["model", "prompt", "n", "size", "response_format"];
    const options = Object.fromEntries(ours.map((name) => [name, "other"]));
    await draw({ options: { ...options, style: "digital_illustration" } });
    expect(upstream.requests.at(-1)?.json).toEqual({
      model: "recraftv4_1_vector",
      prompt,
      n: 1,
      size: "1344x768",
      response_format: "b64_json",
      style: "digital_illustration",
    });
  });

  test("whose answer is cut at any byte has none", async () => {
    await draw({});
    const length = upstream.requests.at(-1)?.sentBytes ?? 0;
    expect(length).toBeGreaterThan(100);
    for (let cutAfterBytes = 0; cutAfterBytes < length; cutAfterBytes++) {
      await expect(draw({}, { cutAfterBytes })).rejects.toMatchObject({ kind: "network" });
    }
  });
});
