import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import {
  type SeedreamBehaviour,
  type SeedreamUpstream,
  seedreamImage,
  startSeedreamUpstream,
} from "../../test/upstreams/byteplus.ts";
import { attempt, untilIdle } from "../adapter.suite.ts";
import {
  type ImageAnswer,
  type ImageCall,
  type ImageOutput,
  ProviderError,
  type ProviderErrorKind,
} from "../contract.ts";
import {
  describeImageProvider,
  type ImageFailure,
  type ImageProviderSetup,
} from "../image-provider.suite.ts";
import { byteplus } from "./index.ts";

const apiKey = "the-right-key";
const prompt = "A boat nobody else may see.";
const call: ImageCall = {
  upstreamModel: "seedream-4-5-251128",
  prompt,
  n: 1,
  size: { width: 2048, height: 2048 },
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
const pixels = { width: 64, height: 48 };
const moderated = "OutputImageSensitiveContentDetected";

interface Setup extends ImageProviderSetup {
  readonly upstream: SeedreamUpstream;
}

async function createSetup() {
  const upstream = await startSeedreamUpstream(apiKey);
  const http = createOutboundHttp();
  const { image: adapter } = await byteplus.create({ http, fetchResult: noResults });
  if (adapter === undefined) throw new Error("no images");
  return {
    upstream,
    adapter,
    connection: { baseUrl: `${upstream.baseUrl}/api/v3`, apiKey },
    call: { ...call, upstreamModel: "seedream-5-0-260128", settings: { output_format: true } },
    formats: ["png", "jpeg"] as const,
    severalCall: { ...call, n: 3 },
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: SeedreamBehaviour,
  status?: number,
): ImageFailure<Setup> {
  const provoke = ({ upstream }: Setup) => {
    upstream.next(behaviour);
    return undefined;
  };
  return { name, kind, ...(status !== undefined && { status }), provoke };
}

const said = `${apiKey} may not say: ${prompt}`;
const refused = (kind: ProviderErrorKind, status: number, code: string) =>
  failure(`${status} ${code}`, kind, { error: { status, body: { error: { code, message: said } } } }, status);

describeImageProvider("BytePlus", createSetup, [
  refused("invalid_request", 400, "InvalidParameter"),
  refused("content_policy", 400, "InputTextSensitiveContentDetected"),
  refused("content_policy", 400, "InputImageSensitiveContentDetected.PrivacyInformation"),
  refused("content_policy", 400, "OutputImageSensitiveContentDetected.PolicyViolation"),
  refused("credentials", 403, "AccountOverdueError"),
  refused("credentials", 404, "ModelNotOpen"),
  refused("credentials", 429, "QuotaExceeded"),
  refused("credentials", 429, "SetLimitExceeded"),
  refused("overloaded", 429, "ModelAccountIpmRateLimitExceeded"),
  refused("overloaded", 500, "ServerOverloaded"),
  refused("upstream", 500, "InternalServiceError"),
  failure("a page", "upstream", { error: { status: 502, body: `<html>${said}</html>` } }, 502),
  failure("JSON that claims success", "bad_answer", { error: { status: 200, body: { data: [] } } }, 200),
  failure("its only image moderated", "content_policy", { images: [moderated] }),
  failure("its only image failed", "upstream", { images: ["InternalServiceError"] }),
  failure("an error in its stream", "invalid_request", {
    first: { error: { code: "BadRequest", message: said } },
  }),
  failure("no image", "bad_answer", { b64Json: 7 }, 200),
  failure("what is no image", "bad_answer", { b64Json: Buffer.from(said).toString("base64") }, 200),
  failure("what is no base64", "bad_answer", { b64Json: "§" }),
  failure("a stream without its end", "network", { images: [moderated], end: "early" }),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 404,
    provoke: () => ({ call: { ...call, upstreamModel: "no-such-model" } }),
  },
]);

describe("BytePlus' images", () => {
  let given: Awaited<ReturnType<typeof createSetup>>;
  beforeAll(async () => {
    given = await createSetup();
  });
  afterAll(async () => await given.close());

  async function begin(behaviour: SeedreamBehaviour, changes: Partial<ImageCall> = {}) {
    given.upstream.next({ pixels, ...behaviour });
    const { context, controller } = attempt(given.connection);
    const answer = await given.adapter.generate({ ...call, ...changes }, context);
    return { answer, controller, output: answer.output[Symbol.asyncIterator]() };
  }
  async function draw(behaviour: SeedreamBehaviour = {}, changes: Partial<ImageCall> = {}) {
    const { answer } = await begin(behaviour, changes);
    return { output: await Array.fromAsync(answer.output), report: answer.report() };
  }
  const sent = () => given.upstream.requests.at(-1)?.json;
  const bytesOf = (output: readonly ImageOutput[]) =>
    output.map((each) => (each.kind === "image" ? Buffer.from(each.bytes) : each.kind));

  test("are asked for in the vendor's words", async () => {
    await draw();
    const ours = {
      model: call.upstreamModel,
      prompt,
      size: "2048x2048",
      sequential_image_generation: "disabled",
      response_format: "b64_json",
      stream: true,
      watermark: false,
    };
    expect(sent()).toEqual(ours);
    const image = await seedreamImage(0);
    const reference = { bytes: image, mediaType: "image/jpeg" } as const;
    const dataUrl = `data:image/jpeg;base64,${image.toString("base64")}`;
    await draw({}, { references: [reference] });
    expect(sent()).toEqual({ ...ours, image: dataUrl });
    await draw({}, { n: 3, size: undefined, references: [reference, reference] });
    expect(sent()).toEqual({
      ...ours,
      size: undefined,
      image: [dataUrl, dataUrl],
      sequential_image_generation: "auto",
      sequential_image_generation_options: { max_images: 3 },
    });
  });

  test("are not changed by options that name what is ours, or an address", async () => {
    const ours = [
      "model",
      "prompt",
      "image",
      "size",
      "stream",
      "watermark",
      "response_format",
      "output_format",
    ];
    const several = ["sequential_image_generation", "sequential_image_generation_options"];
    const options = Object.fromEntries([...ours, ...several].map((name) => [name, "https://evil.example"]));
    await draw();
    const usual = sent();
    await draw({}, { options });
    expect(sent()).toEqual(usual);
  });

  test("are handed on one by one, while the next is still being made", async () => {
    const gates = [0, 1, 2].map(() => Promise.withResolvers<void>());
    const { output } = await begin(
      { beforeImage: (index) => (index === 0 ? undefined : gates[index]?.promise) },
      { n: 3 },
    );
    for (const [index, gate] of gates.entries()) {
      gate.resolve();
      const { value } = await output.next();
      expect(bytesOf([value as ImageOutput])).toEqual([await seedreamImage(index)]);
    }
    expect(await output.next()).toMatchObject({ done: true });
  });

  test.for([
    ["one is moderated", [true, moderated, true], [0, 2]],
    ["an error ends the set", [true, "InternalServiceError", true], [0]],
    ["the vendor makes fewer", [true, true], [0, 1]],
    ["the vendor makes more", [true, true, true, true], [0, 1, 2]],
  ] as const)("are those that were made where %s", async ([, images, made]) => {
    const { output, report } = await draw({ images, isOddlyFramed: true }, { n: 3 });
    expect(bytesOf(output)).toEqual(await Promise.all(made.map((index) => seedreamImage(index))));
    const tokens = 16_384 * images.filter((image) => image === true).length;
    if (made.length > 1)
      expect(report?.tokens).toMatchObject({ completion: tokens, imageCompletion: tokens });
  });

  test.for<[string, object | null, unknown]>([
    ["none", null, undefined],
    ["a part of it", { generated_images: 1 }, { prompt: 0, completion: 0 }],
    ["what are no numbers", { output_tokens: "7" }, { completion: Number.NaN }],
  ])("report what the vendor reports: %s", async ([, usage, tokens]) => {
    const { report } = await draw({ usage });
    if (tokens === undefined) expect(report).toBeUndefined();
    else expect(report?.tokens).toMatchObject(tokens as object);
  });

  test("are whole with the last one asked for, also where the stream then breaks off or hangs", async () => {
    for (const end of ["early", "never"] as const) {
      const { output, report } = await draw({ end });
      expect(output).toHaveLength(1);
      expect(report).toBeUndefined();
    }
    await expect(draw({ images: [true], end: "early" }, { n: 2 })).rejects.toMatchObject({ kind: "network" });
    await untilIdle(given.running);
  });

  test.for<[string, (begun: { answer: ImageAnswer; controller: AbortController }) => unknown]>([
    ["the consumer leaves", ({ answer }) => answer.output[Symbol.asyncIterator]().return?.()],
    ["the signal fires", ({ controller }) => controller.abort()],
  ])("end upstream when %s", async ([, leave]) => {
    const never = Promise.withResolvers<void>();
    const begun = await begin(
      { beforeImage: (index) => (index === 1 ? never.promise : undefined) },
      { n: 2 },
    );
    await begun.output.next();
    expect(given.running()).toBe(1);
    const next = begun.output.next().catch((error: unknown) => error);
    await leave(begun);
    await untilIdle(given.running);
    const last = await next;
    if (begun.controller.signal.aborted) expect(last).toBeInstanceOf(ProviderError);
    else expect(last).toMatchObject({ done: true });
  });

  test("end upstream when the signal fires while the headers still wait", async () => {
    const never = Promise.withResolvers<void>();
    given.upstream.next({ beforeImage: () => never.promise });
    const before = given.upstream.requests.length;
    const { context, controller } = attempt(given.connection);
    const drawing = given.adapter.generate(call, context);
    await given.upstream.received(before + 1);
    controller.abort();
    await expect(drawing).rejects.toBeInstanceOf(ProviderError);
    await untilIdle(given.running);
  });

  test("cut at any byte are whole or none", async () => {
    const small = { pixels: { width: 8, height: 8 } };
    await draw(small);
    const length = given.upstream.requests.at(-1)?.sentBytes ?? 0;
    const image = await seedreamImage(0, small.pixels);
    expect(length).toBeGreaterThan(image.length);
    for (let cutAfterBytes = 1; cutAfterBytes < length; cutAfterBytes += 1) {
      const drawing = draw({ ...small, cutAfterBytes }).then(
        ({ output }) => bytesOf(output),
        (error: unknown) => (error instanceof ProviderError ? "failed" : error),
      );
      expect(["failed", [image]], `cut after ${cutAfterBytes}`).toContainEqual(await drawing);
    }
  });
});
