import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import { createImageSource } from "../../test/upstreams/stand-in/image-source.ts";
import {
  type GrokBehaviour,
  type GrokImages,
  type GrokUpstream,
  grokCodes,
  startGrokUpstream,
} from "../../test/upstreams/xai.ts";
import { attempt } from "../adapter.suite.ts";
import type { ImageCall, ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { createResultFetches } from "../upstream/network/fetch-result.ts";
import { xai } from "./index.ts";

const apiKey = "xai-the-right-one";
const prompt = "A picture nobody else may know of.";
const call: ImageCall = {
  upstreamModel: "grok-imagine-image-2.0",
  prompt,
  n: 1,
  size: { width: 576, height: 1280 },
  shape: { aspectRatio: "9:20", resolution: "1K" },
  quality: "auto",
  background: "auto",
  format: "jpeg",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));
let http: OutboundHttp;
let upstream: GrokUpstream;
beforeAll(async () => {
  http = createOutboundHttp();
  upstream = await startGrokUpstream({ apiKey });
});
afterAll(async () => {
  await Promise.all([http.close(), results.close(), upstream.close()]);
});

async function adapterOf({ baseUrl }: GrokUpstream) {
  const { image } = await xai.create({ http, fetchResult: results.of(baseUrl) });
  if (image === undefined) throw new Error("no images");
  return image;
}

interface Setup extends ImageProviderSetup {
  readonly upstream: GrokUpstream;
}

async function createSetup(): Promise<Setup> {
  const own = await startGrokUpstream({ apiKey });
  return {
    upstream: own,
    adapter: await adapterOf(own),
    connection: { baseUrl: own.baseUrl, apiKey },
    call,
    severalCall: { ...call, n: 3 },
    running: () => own.requests.filter(({ fate }) => fate === "open").length,
    close: () => own.close(),
  };
}

const said = `${apiKey} may not say: ${prompt}`;

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: GrokBehaviour,
  status?: number,
): ImageFailure<Setup> {
  const provoke = ({ upstream: own }: Setup) => {
    own.next(behaviour);
    return undefined;
  };
  return { name, kind, ...(status !== undefined && { status }), provoke };
}

const refused = (status: number, code: string, error = said): GrokBehaviour => ({
  kind: "refusal",
  status,
  body: { code, error, usage: { cost_in_usd_ticks: 200_000_000 } },
});
const images = (changes: Omit<GrokImages, "kind">): GrokImages => ({ kind: "images", ...changes });

describeImageProvider("xAI's images", createSetup, [
  failure("a refusal", "invalid_request", refused(400, grokCodes.argument), 400),
  failure(
    "moderation",
    "content_policy",
    refused(400, grokCodes.argument, "Generated image rejected by content moderation."),
    400,
  ),
  failure(
    "moderation of the request",
    "content_policy",
    refused(403, grokCodes.permission, "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE"),
    403,
  ),
  failure(
    "a new team without credits",
    "credentials",
    refused(403, grokCodes.permission, "Your newly created team doesn't have any credits yet."),
    403,
  ),
  failure(
    "no credits",
    "credentials",
    refused(
      429,
      grokCodes.exhausted,
      "Your team has either used all available credits or reached its limit.",
    ),
    429,
  ),
  failure("a limit", "overloaded", refused(429, grokCodes.exhausted), 429),
  failure("a broken upstream", "upstream", refused(500, grokCodes.unavailable), 500),
  failure(
    "a page",
    "bad_answer",
    { ...refused(200, ""), ...{ headers: { "content-type": "text/html" } } } as GrokBehaviour,
    200,
  ),
  failure("all kept back", "content_policy", images({ moderated: [0] })),
  failure("no images", "bad_answer", images({ count: 0 }), 200),
  failure("an empty item", "bad_answer", images({ content: "nothing" }), 200),
  failure("what is no image", "bad_answer", images({ content: "noise" }), 200),
  failure("an image that has gone", "network", images({ content: "url", expired: true })),
  {
    name: "a wrong key, with the status of a wrong request",
    kind: "credentials",
    status: 400,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "xai-wrong" } }),
  },
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 404,
    provoke: ({ call: right }) => ({ call: { ...right, upstreamModel: "no-such-model" } }),
  },
]);

async function draw(changes: Partial<ImageCall> = {}, behaviour?: GrokImages) {
  if (behaviour !== undefined) upstream.next(behaviour);
  const { context } = attempt({ baseUrl: upstream.baseUrl, apiKey });
  const answer = await (await adapterOf(upstream)).generate({ ...call, ...changes }, context);
  const output = await Array.fromAsync(answer.output);
  return { output, report: answer.report() };
}

const lastBody = () => upstream.requests.at(-1)?.json;

describe("the request", () => {
  const usual = {
    model: "grok-imagine-image-2.0",
    prompt,
    n: 1,
    response_format: "b64_json",
    aspect_ratio: "9:20",
    resolution: "1k",
  };

  test("says ratio and tier, the vendor's name of a ratio where it differs, or nothing", async () => {
    await draw({ quality: "low" });
    expect(lastBody()).toEqual({ ...usual, quality: "low" });
    const settings = { aspect_ratios: { "1792x2560": "3:4" } };
    const size = { width: 1792, height: 2560 };
    await draw({ size, shape: { aspectRatio: "2:3", resolution: "2K" }, settings });
    expect(lastBody()).toEqual({ ...usual, aspect_ratio: "3:4", resolution: "2k" });
    await draw({ size: undefined, shape: undefined });
    expect(lastBody()).toEqual({ ...usual, aspect_ratio: undefined, resolution: undefined });
  });

  test("has the images to start from as data URLs, one or several", async () => {
    const source = createImageSource();
    const bytes = await source.image({
      format: "png",
      width: 64,
      height: 64,
      isTransparent: false,
      shade: 1,
    });
    const reference = { bytes, mediaType: "image/png" } as const;
    const sent = { type: "image_url", url: `data:image/png;base64,${bytes.toString("base64")}` };
    await draw({ references: [reference] });
    expect(lastBody()).toEqual({ ...usual, image: sent });
    await draw({ references: [reference, reference] });
    expect(lastBody()).toEqual({ ...usual, images: [sent, sent] });
    expect(upstream.requests.at(-1)?.path).toBe("/v1/images/edits");
  });

  test("is not changed by options that name what is ours", async () => {
    const ours = ["model", "prompt", "n", "response_format", "aspect_ratio", "resolution", "quality"];
    const others = ["image", "images", "mask", "size", "user"];
    await draw({ options: Object.fromEntries([...ours, ...others].map((name) => [name, "other"])) });
    expect(lastBody()).toEqual(usual);
  });
});

describe("the answer", () => {
  test("gives its images by address as well, fetched without the key", async () => {
    const { output } = await draw({ n: 2 }, images({ content: "url" }));
    expect(output).toMatchObject([
      { kind: "image", mediaType: "image/jpeg" },
      { kind: "image", mediaType: "image/jpeg" },
    ]);
    expect(upstream.requests.at(-1)?.path).toMatch(/^\/imgen\//);
    expect(upstream.requests.at(-1)?.headers).not.toHaveProperty("authorization");
  });

  test("is without what was kept back", async () => {
    expect((await draw({ n: 3 }, images({ moderated: [0, 2] }))).output).toHaveLength(1);
  });

  test.for<[string, unknown, number | undefined]>([
    ["the cost in ticks", { cost_in_usd_ticks: 37_756_000 }, 0.0037756],
    ["no usage", null, undefined],
    ["usage without a cost", { input_tokens: 1 }, undefined],
    ["a cost that is no number", { cost_in_usd_ticks: "200000000" }, undefined],
  ])("reports %s", async ([, usage, costUsd]) => {
    const { report } = await draw({}, images({ usage }));
    expect(report).toEqual(costUsd === undefined ? undefined : { costUsd });
  });

  test("that is left while an image is fetched ends the fetch", async () => {
    const fetched = Promise.withResolvers<void>();
    const beforeDelivery = () => {
      fetched.resolve();
      return new Promise<void>(() => undefined);
    };
    upstream.next(images({ content: "url", beforeDelivery }));
    const { context } = attempt({ baseUrl: upstream.baseUrl, apiKey });
    const answer = await (await adapterOf(upstream)).generate(call, context);
    const output = answer.output[Symbol.asyncIterator]();
    const image = output.next();
    await fetched.promise;
    await output.return?.();
    expect(await image).toMatchObject({ done: true });
    expect(await upstream.requests.at(-1)?.ended).toBe("closed_by_client");
  });

  test("cut at every byte is none", async () => {
    const byAddress = images({ content: "url" });
    await draw({}, byAddress);
    const length = upstream.requests.at(-2)?.sentBytes ?? 0;
    expect(length).toBeGreaterThan(100);
    for (let cutAfterBytes = 0; cutAfterBytes < length; cutAfterBytes++) {
      await expect(draw({}, { ...byAddress, cutAfterBytes })).rejects.toMatchObject({ kind: "network" });
    }
  });
});
