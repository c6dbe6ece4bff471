import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import {
  type FluxUpstream,
  type PlainAnswer,
  startFluxUpstream,
  type TaskBehaviour,
} from "../../test/upstreams/black-forest-labs.ts";
import { createImageSource } from "../../test/upstreams/stand-in/image-source.ts";
import { type StandIn, startStandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";
import { attempt, untilIdle } from "../adapter.suite.ts";
import { type ImageAdapter, type ImageCall, ProviderError, type ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { createResultFetches } from "../upstream/network/fetch-result.ts";
import { onlyTo } from "../upstream/network/key-hosts.ts";
import { createImageAdapter } from "./image.ts";
import { blackForestLabs } from "./index.ts";

const apiKey = "bfl-the-right-one";
const prompt = "A picture nobody else may know of.";
const call: ImageCall = {
  upstreamModel: "flux-2-pro",
  prompt,
  n: 1,
  size: { width: 64, height: 64 },
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

let outbound: OutboundHttp;
const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));
const pace = { firstMs: 1, mostMs: 5 };
const sister = "https://api.eu1.bfl.ai";

/** The adapter as a process makes it, but for the pace; the vendor's sister host is the stand-in. */
function adapterOf({ baseUrl }: StandIn, ask = pace): ImageAdapter {
  const http = {
    request: (request: Parameters<OutboundHttp["request"]>[0]) =>
      outbound.request({ ...request, url: request.url.replace(sister, baseUrl) }),
  };
  const { keyHosts } = blackForestLabs;
  return createImageAdapter({
    http: onlyTo(http, baseUrl, keyHosts),
    fetchResult: results.of(baseUrl),
    pace: ask,
  });
}

let upstream: FluxUpstream;
let elsewhere: StandIn;
const connection = () => ({ baseUrl: upstream.baseUrl, apiKey });

beforeAll(async () => {
  outbound = createOutboundHttp();
  upstream = await startFluxUpstream({ apiKey });
  elsewhere = await startStandIn((_, answer) => answer.send(200, {}, "inside"));
});
afterAll(async () => {
  await Promise.all([upstream.close(), elsewhere.close(), outbound.close(), results.close()]);
});

interface Setup extends ImageProviderSetup {
  readonly upstream: FluxUpstream;
}

async function createSetup(): Promise<Setup> {
  const own = await startFluxUpstream({ apiKey });
  return {
    upstream: own,
    adapter: adapterOf(own),
    connection: { baseUrl: own.baseUrl, apiKey },
    call,
    formats: ["png", "jpeg"],
    running: () => own.requests.filter(({ fate }) => fate === "open").length,
    close: () => own.close(),
  };
}

const said = `${apiKey} may not say: ${prompt}`;
const refused = (status: number, detail: unknown = said): PlainAnswer => ({ status, body: { detail } });

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: TaskBehaviour,
  status?: number,
): ImageFailure<Setup> {
  const provoke = ({ upstream: own }: Setup) => {
    own.next(behaviour);
    return undefined;
  };
  return { name, kind, ...(status !== undefined && { status }), provoke };
}

describeImageProvider("Black Forest Labs", createSetup, [
  failure("no credits", "credentials", { submission: refused(402, "Insufficient credits") }, 402),
  failure(
    "faults of the request",
    "invalid_request",
    { submission: refused(422, [{ loc: ["body"], msg: said }]) },
    422,
  ),
  failure("too many tasks", "overloaded", { submission: refused(429, "Rate limit exceeded") }, 429),
  failure("a broken upstream", "upstream", { submission: refused(500, "Internal Server Error") }, 500),
  failure("high load", "overloaded", { submission: refused(503) }, 503),
  failure("a page", "bad_answer", { submission: { status: 200, body: "<html></html>" } }),
  failure("no address to ask", "bad_answer", { submission: { status: 200, body: { id: "x" } } }, 200),
  failure("a moderated request", "content_policy", { states: ["Pending", "Request Moderated"] }),
  failure("a moderated image", "content_policy", { states: ["Content Moderated"] }),
  failure("an error", "upstream", { states: ["Pending", "Error"] }),
  failure("a failure", "upstream", { states: ["Failed"] }),
  failure("a lost task", "upstream", { states: ["Task not found"] }),
  failure(
    "a lost task by status",
    "upstream",
    { states: [{ status: 404, body: { status: "Task not found" } }] },
    404,
  ),
  failure("no state", "bad_answer", { states: [{ status: 200, body: {} }] }, 200),
  failure("ready with nothing", "bad_answer", { states: [{ status: 200, body: { status: "Ready" } }] }, 200),
  failure("three bad answers in a row", "upstream", { states: [refused(502)] }, 502),
  failure("an image that has gone", "network", { expired: 404 }),
  failure("an image that has run out", "network", { expired: 410 }),
  failure("what is no image", "bad_answer", { sample: Buffer.from("<html></html>") }, 200),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 403,
    provoke: ({ connection: right }) => ({ connection: { ...right, apiKey: "bfl-wrong" } }),
  },
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 404,
    provoke: ({ call: right }) => ({ call: { ...right, upstreamModel: "no-such/model" } }),
  },
]);

async function draw(changes: Partial<ImageCall> = {}, behaviour: TaskBehaviour = {}) {
  upstream.requests.length = 0;
  upstream.next(behaviour);
  const { context } = attempt(connection());
  const answer = await adapterOf(upstream).generate({ ...call, ...changes }, context);
  const output = await Array.fromAsync(answer.output);
  return { output, report: answer.report() };
}

async function errorOf(drawing: Promise<unknown>): Promise<ProviderError> {
  const thrown: unknown = await drawing.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof ProviderError)) throw new Error("no ProviderError", { cause: thrown });
  return thrown;
}

const questions = () => upstream.requests.filter(({ path }) => path.startsWith("/v1/get_result")).length;

describe("a task", () => {
  test("is asked after on a sister host, with the key, and its image is fetched without", async () => {
    const { output } = await draw(
      {},
      { pollingUrl: `${sister}/v1/get_result?id=none`, states: ["Ready"] },
    ).catch((error: unknown) => ({ output: error }));
    expect(output).toMatchObject({ kind: "upstream", status: 404 });
    expect(upstream.requests.at(-1)?.headers["x-key"]).toBe(apiKey);
    await draw();
    expect(upstream.requests.at(-1)).toMatchObject({ method: "GET", fate: "finished" });
    expect(upstream.requests.at(-1)?.path).toMatch(/^\/delivery\//);
    expect(upstream.requests.at(-1)?.headers).not.toHaveProperty("x-key");
  });

  test.for([
    ["the address to ask", { pollingUrl: "inside" }, "network"],
    ["the image's address", { sampleUrl: "inside" }, "bad_answer"],
  ] as const)("nothing goes to where it may not: %s", async ([, behaviour, kind]) => {
    const away = Object.fromEntries(
      Object.keys(behaviour).map((key) => [key, `${elsewhere.baseUrl}/inside`]),
    );
    expect(await errorOf(draw({}, away))).toMatchObject({ kind });
    expect(elsewhere.requests).toEqual([]);
  });

  test("goes on while questions fail in passing", async () => {
    const passing = [
      refused(429),
      refused(500),
      "Pending",
      refused(503),
      { status: 200, body: { status: "Queued" } },
    ];
    const { output } = await draw({}, { states: [...passing, "Ready"] });
    expect(output).toHaveLength(1);
    expect(questions()).toBe(6);
  });

  test("is given up at once where a question is refused for good", async () => {
    expect(await errorOf(draw({}, { states: [refused(403)] }))).toMatchObject({ kind: "credentials" });
    expect(questions()).toBe(1);
  });

  test("starts from images as base64, in their order, and sends what was asked for", async () => {
    const source = createImageSource();
    const image = (shade: number) =>
      source.image({ format: "png", width: 64, height: 64, isTransparent: false, shade });
    const [first, second] = [await image(1), await image(2)];
    const references = [first, second].map((bytes) => ({ bytes, mediaType: "image/png" as const }));
    await draw({ references, seed: 7, options: { safety_tolerance: 1 } });
    expect(upstream.requests[0]?.json).toEqual({
      prompt,
      width: 64,
      height: 64,
      seed: 7,
      output_format: "png",
      safety_tolerance: 1,
      input_image: first.toString("base64"),
      input_image_2: second.toString("base64"),
    });
  });

  test("is not changed by options that name what is ours, or an address", async () => {
    const ours = ["prompt", "width", "height", "seed", "aspect_ratio", "output_format", "image_prompt"];
    const addresses = ["webhook_url", "webhook_secret", "input_image", "input_image_2", "input_image_10"];
    const options = Object.fromEntries([...ours, ...addresses].map((name) => [name, "https://evil.example"]));
    await draw({ options });
    expect(upstream.requests[0]?.json).toEqual({ prompt, width: 64, height: 64, output_format: "png" });
  });
});

describe("the cost", () => {
  test.for<[string, TaskBehaviour, number | undefined]>([
    ["is that of the submission", { cost: 4.5 }, 0.045],
    ["is that of the last answer", { cost: 4.5, finalCost: 3 }, 0.03],
    ["is unknown", { cost: null }, undefined],
    ["is what it is, however odd", { cost: -1 }, -0.01],
  ])("%s", async ([, behaviour, costUsd]) => {
    expect((await draw({}, behaviour)).report).toEqual(costUsd === undefined ? undefined : { costUsd });
  });
});

describe("cut at every byte", () => {
  test("the answer to the submission is no task", async () => {
    await draw();
    const length = upstream.requests[0]?.sentBytes ?? 0;
    expect(length).toBeGreaterThan(100);
    for (let bytes = 0; bytes < length; bytes++) {
      const error = await errorOf(draw({}, { cutSubmissionAfterBytes: bytes }));
      expect(error.kind).toBe("network");
      expect(questions()).toBe(0);
    }
  });

  test("the answer to a question is none, and it is asked again", async () => {
    await draw({}, { states: ["Ready"] });
    const length = upstream.requests[1]?.sentBytes ?? 0;
    expect(length).toBeGreaterThan(100);
    for (let bytes = 0; bytes < length; bytes++) {
      const { output } = await draw({}, { states: ["Ready"], cutQuestionAfterBytes: bytes });
      expect(output).toHaveLength(1);
      expect(questions()).toBe(2);
    }
  });

  test("the image is none", async () => {
    await draw();
    const length = upstream.requests.at(-1)?.sentBytes ?? 0;
    expect(length).toBeGreaterThan(50);
    for (let bytes = 0; bytes < length; bytes++) {
      expect((await errorOf(draw({}, { cutImageAfterBytes: bytes }))).kind).toBe("network");
    }
  });
});

describe("leaving", () => {
  test("ends the question that waits, by the signal or by turning away", async () => {
    for (const leave of ["signal", "return"] as const) {
      const asked = Promise.withResolvers<void>();
      upstream.requests.length = 0;
      upstream.next({
        beforeAnswer: () => {
          asked.resolve();
          return new Promise<void>(() => undefined);
        },
      });
      const { context, controller } = attempt(connection());
      const answer = await adapterOf(upstream).generate(call, context);
      const output = answer.output[Symbol.asyncIterator]();
      const image = output.next();
      await asked.promise;
      if (leave === "signal") {
        controller.abort();
        expect((await errorOf(image)).kind).toBe("timeout");
      } else {
        await output.return?.();
        expect(await image).toMatchObject({ done: true });
      }
      await untilIdle(() => upstream.requests.filter(({ fate }) => fate === "open").length);
      expect(upstream.requests.at(-1)?.fate).toBe("closed_by_client");
      expect(answer.report()).toEqual({ costUsd: 0.03 });
    }
  });

  test("ends the pause between two questions", async () => {
    upstream.requests.length = 0;
    upstream.next({});
    const { context, controller } = attempt(connection());
    const patient = adapterOf(upstream, { firstMs: 600_000, mostMs: 600_000 });
    const image = Array.fromAsync((await patient.generate(call, context)).output);
    controller.abort();
    expect((await errorOf(image)).kind).toBe("timeout");
    expect(questions()).toBe(0);
  });
});
