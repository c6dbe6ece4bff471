import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import {
  type FalUpstream,
  falImage,
  type JobBehaviour,
  type PlainAnswer,
  startFalUpstream,
} from "../../test/upstreams/fal.ts";
import { type StandIn, startStandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";
import { attempt, untilIdle } from "../adapter.suite.ts";
import { type ImageCall, type ImageOutput, ProviderError, type ProviderErrorKind } from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { createResultFetches } from "../upstream/network/fetch-result.ts";
import { onlyTo } from "../upstream/network/key-hosts.ts";
import { createImageAdapter } from "./image.ts";
import { fal } from "./index.ts";

const apiKey = "the-id:the-right-secret";
const prompt = "A boat nobody else may see.";
const size = { width: 64, height: 48 };
const call: ImageCall = {
  upstreamModel: "fal-ai/flux/schnell",
  prompt,
  n: 1,
  size,
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

let outbound: OutboundHttp;
let upstream: FalUpstream;
let elsewhere: StandIn;
const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));

beforeAll(async () => {
  outbound = createOutboundHttp();
  elsewhere = await startStandIn((_, answer) => answer.send(200, {}, "inside"));
});
afterAll(async () => {
  await Promise.all([elsewhere.close(), outbound.close(), results.close()]);
});
beforeEach(async () => {
  upstream = await startFalUpstream(apiKey);
});
afterEach(async () => await upstream.close());

/** The adapter as a process makes it, but for the pace. */
const adapterOf = ({ baseUrl }: StandIn) =>
  createImageAdapter({
    http: onlyTo(outbound, baseUrl, fal.keyHosts),
    fetchResult: results.of(baseUrl),
    pace: { firstMs: 1, mostMs: 5 },
  });

interface Setup extends ImageProviderSetup {
  readonly upstream: FalUpstream;
}

const workAt = (at: FalUpstream) => at.openJobs() + at.requests.filter(({ fate }) => fate === "open").length;

async function createSetup(): Promise<Setup> {
  const own = await startFalUpstream(apiKey);
  return {
    upstream: own,
    adapter: adapterOf(own),
    connection: { baseUrl: own.baseUrl, apiKey },
    call,
    formats: ["jpeg", "png"],
    severalCall: { ...call, n: 4 },
    running: () => workAt(own),
    close: () => own.close(),
  };
}

const said = `${apiKey} may not say: ${prompt}`;
const faulty = (status: number, type: string): PlainAnswer => ({
  status,
  body: {
    detail: [{ loc: ["body", "prompt"], msg: said, type, url: "https://docs.fal.ai/errors", input: prompt }],
  },
});
const failed = (status: number, error_type: string): PlainAnswer => ({
  status,
  body: { detail: said, error_type },
});
const refused = (status: number, detail: string): PlainAnswer => ({ status, body: { detail } });

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: JobBehaviour,
  status?: number,
): ImageFailure<Setup> {
  const provoke = ({ upstream: own }: Setup) => {
    own.next(behaviour);
    return undefined;
  };
  return { name, kind, ...(status !== undefined && { status }), provoke };
}
const result = (kind: ProviderErrorKind, answer: PlainAnswer, name: string) =>
  failure(`${name} in the result`, kind, { result: answer }, answer.status);
const submission = (kind: ProviderErrorKind, answer: PlainAnswer, name: string) =>
  failure(`${name} at the submission`, kind, { submission: answer }, answer.status);

describeImageProvider("fal", createSetup, [
  submission("credentials", refused(403, "User is locked. Reason: Exhausted balance."), "no money"),
  submission("overloaded", refused(429, said), "too many jobs"),
  submission("invalid_request", failed(400, "bad_request"), "a bad request"),
  submission("upstream", failed(500, "internal_error"), "a failure"),
  submission("bad_answer", { status: 200, body: { request_id: "x" } }, "no address"),
  failure("a page at the submission", "bad_answer", { submission: { status: 200, body: "<html></html>" } }),
  result("content_policy", faulty(422, "content_policy_violation"), "a refusal by policy"),
  result("invalid_request", faulty(422, "string_too_long"), "a fault of the request"),
  result("upstream", faulty(422, "no_media_generated"), "nothing made"),
  result("upstream", faulty(400, "downstream_service_error"), "a failure of another's service"),
  result("upstream", faulty(500, "internal_server_error"), "a failure"),
  result("timeout", faulty(504, "generation_timeout"), "a model too slow"),
  result("timeout", failed(504, "startup_timeout"), "a runner too slow"),
  result("overloaded", failed(503, "runner_scheduling_failure"), "no runner"),
  result("upstream", failed(503, "runner_disconnected"), "a lost runner"),
  result("upstream", failed(499, "client_cancelled"), "a cancellation"),
  failure("an error where it is completed", "timeout", {
    failure: { error: said, error_type: "request_timeout" },
  }),
  failure("an error of no type where it is completed", "upstream", { failure: { error: said } }),
  failure("a state that it has not", "upstream", { states: ["FAILED"] }),
  failure("three bad answers in a row", "upstream", { states: [refused(502, said)] }, 502),
  failure("a lost job", "invalid_request", { states: [{ status: 404, body: { status: "NOT_FOUND" } }] }, 404),
  failure("nothing but unfit images", "content_policy", { flags: [true] }),
  failure("no images", "bad_answer", { result: { status: 200, body: { images: [] } } }, 200),
  failure("no address of an image", "bad_answer", { result: { status: 200, body: { images: [{}] } } }, 200),
  failure("an image that has gone", "network", { expired: 404 }),
  failure("what is no image", "bad_answer", { file: Buffer.from("<html></html>") }, 200),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
  {
    name: "an unknown app",
    kind: "invalid_request",
    status: 404,
    provoke: () => ({ call: { ...call, upstreamModel: "fal-ai/no-such-app" } }),
  },
]);

async function begin(behaviour: JobBehaviour = {}, changes: Partial<ImageCall> = {}) {
  upstream.next(behaviour);
  const { controller, context } = attempt({ baseUrl: upstream.baseUrl, apiKey });
  const { output } = await adapterOf(upstream).generate({ ...call, ...changes }, context);
  return { controller, output: output[Symbol.asyncIterator]() };
}

async function draw(behaviour: JobBehaviour = {}, changes: Partial<ImageCall> = {}) {
  const { output } = await begin(behaviour, changes);
  const images: ImageOutput[] = [];
  for (let next = await output.next(); !next.done; next = await output.next()) images.push(next.value);
  return images.map((image) => (image.kind === "image" ? Buffer.from(image.bytes) : image.kind));
}

const sent = () => upstream.requests.findLast(({ method }) => method === "POST")?.json;
const cancellations = () => upstream.requests.filter(({ method }) => method === "PUT").length;
const idle = () => untilIdle(() => workAt(upstream));

describe("fal's images", () => {
  test("are asked for in the app's words, once, and not kept for long", async () => {
    await draw({}, { n: 2, seed: 7, options: { num_inference_steps: 2 } });
    const checked = { sync_mode: false, enable_safety_checker: true };
    const input = { prompt, num_images: 2, image_size: size, seed: 7, output_format: "jpeg", ...checked };
    expect(sent()).toEqual({ ...input, num_inference_steps: 2 });
    const { headers, path } = upstream.requests[0] ?? {};
    expect(path).toBe("/fal-ai/flux/schnell");
    expect(headers).toMatchObject({
      "x-fal-no-retry": "1",
      "x-fal-object-lifecycle-preference": '{"expiration_duration_seconds":3600}',
    });
  });

  test("are not changed by options that name what is ours", async () => {
    await draw();
    const usual = sent();
    const ours = ["prompt", "num_images", "image_size", "seed", "output_format", "sync_mode"];
    const names = [...ours, "enable_safety_checker"];
    await draw({}, { options: Object.fromEntries(names.map((name) => [name, "https://evil.example"])) });
    expect(sent()).toEqual(usual);
  });

  test("are fetched without the key, after questions with it", async () => {
    expect(await draw({}, { n: 2 })).toEqual([await falImage(0, size), await falImage(1, size)]);
    const keys = upstream.requests.map(({ path, headers }) => [
      path.startsWith("/files/"),
      headers.authorization,
    ]);
    expect(keys.filter(([isFile]) => isFile)).toEqual([
      [true, undefined],
      [true, undefined],
    ]);
    expect(keys.filter(([isFile]) => !isFile)).toHaveLength(5);
    expect(new Set(keys.filter(([isFile]) => !isFile).map(([, key]) => key))).toEqual(
      new Set([`Key ${apiKey}`]),
    );
    expect(cancellations()).toBe(0);
  });

  test.for(["status_url", "response_url", "cancel_url", "fileUrl"] as const)(
    "nothing goes to where it may not: %s",
    async (name) => {
      const url = `${elsewhere.baseUrl}/inside`;
      const behaviour = name === "fileUrl" ? { [name]: url } : { addresses: { [name]: url } };
      const { output } = await begin(behaviour);
      if (name === "cancel_url") await output.return?.();
      else
        await expect(output.next()).rejects.toMatchObject({
          kind: name === "fileUrl" ? "bad_answer" : "network",
        });
      expect(elsewhere.requests).toEqual([]);
    },
  );

  test("leave those out that the app's checker blacked out, and need no list of it", async () => {
    const first = await falImage(0, size);
    expect(await draw({ flags: [false, true] }, { n: 2 })).toEqual([first]);
    expect(await draw({ flags: null })).toEqual([first]);
  });

  test("go on while questions fail in passing", async () => {
    const passing = [refused(500, said), refused(429, said), "IN_QUEUE", refused(503, said), "COMPLETED"];
    expect(await draw({ states: passing })).toHaveLength(1);
  });
});

describe("a job", () => {
  /** Begun, with a question that waits for its answer. */
  async function asked() {
    const arrived = Promise.withResolvers<void>();
    const never = Promise.withResolvers<void>();
    const begun = await begin({
      beforeAnswer: (index) => {
        if (index === 1) arrived.resolve();
        return index === 1 ? never.promise : undefined;
      },
    });
    const next = begun.output.next().catch((error: unknown) => error);
    await arrived.promise;
    return { ...begun, next };
  }

  test("is cancelled once when its consumer leaves", async () => {
    const { output, next } = await asked();
    await output.return?.();
    expect(await next).toMatchObject({ done: true });
    await idle();
    expect(upstream.cancelledJobs()).toBe(1);
    expect(cancellations()).toBe(1);
  });

  test("is cancelled once when the signal fires", async () => {
    const { controller, output, next } = await asked();
    controller.abort();
    expect(await next).toBeInstanceOf(ProviderError);
    await output.return?.();
    await idle();
    expect(cancellations()).toBe(1);
  });

  test("is cancelled when the signal fires before anybody asks", async () => {
    const { controller } = await begin();
    controller.abort();
    await idle();
    expect(cancellations()).toBe(1);
  });

  test("is not submitted when the signal fires before that", async () => {
    const { controller, context } = attempt({ baseUrl: upstream.baseUrl, apiKey });
    const drawing = adapterOf(upstream).generate({ ...call, prompt: "left" }, context);
    controller.abort();
    await expect(drawing).rejects.toBeInstanceOf(ProviderError);
    await draw();
    expect(upstream.requests.filter(({ method }) => method === "POST")).toMatchObject([{ json: { prompt } }]);
  });

  test("is cancelled as soon as it has an address when the signal fires amid its submission", async () => {
    const arrived = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    upstream.next({
      beforeSubmission: () => {
        arrived.resolve();
        return answer.promise;
      },
    });
    const { controller, context } = attempt({ baseUrl: upstream.baseUrl, apiKey });
    const drawing = adapterOf(upstream).generate(call, context);
    await arrived.promise;
    controller.abort();
    await expect(drawing).rejects.toBeInstanceOf(ProviderError);
    expect(upstream.openJobs()).toBe(1);
    answer.resolve();
    await idle();
    expect(cancellations()).toBe(1);
  });

  test("is not cancelled once it is completed; who leaves ends the fetch", async () => {
    const arrived = Promise.withResolvers<void>();
    const never = Promise.withResolvers<void>();
    const { output } = await begin({
      beforeFile: () => {
        arrived.resolve();
        return never.promise;
      },
    });
    const next = output.next();
    await arrived.promise;
    await output.return?.();
    expect(await next).toMatchObject({ done: true });
    await idle();
    expect(cancellations()).toBe(0);
    never.resolve();
  });

  test.for(["submission", "question", "result", "file"] as const)(
    "cut at any byte of its %s is none",
    async (part) => {
      const small = { states: ["COMPLETED"], file: await falImage(0, { width: 8, height: 8 }) };
      await draw(small);
      const place = { submission: 0, question: 1, result: 2, file: 3 }[part];
      const length = upstream.requests[place]?.sentBytes ?? 0;
      expect(length).toBeGreaterThan(100);
      for (let bytes = 0; bytes < length; bytes += 1) {
        const drawing = draw({ ...small, cut: { [part]: bytes } });
        // A question is asked again.
        if (part === "question") expect(await drawing, `cut after ${bytes}`).toHaveLength(1);
        else await expect(drawing, `cut after ${bytes}`).rejects.toBeInstanceOf(ProviderError);
      }
    },
  );
});
