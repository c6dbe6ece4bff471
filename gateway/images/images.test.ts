import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { createServer } from "node:net";
import type { HandlerContext } from "@connectrpc/connect";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerateRequest } from "../../gen/media/image/v1/image_pb.ts";
import { createRemoteTransport } from "../../lib/rpc/client.ts";
import { requestIdKey } from "../../lib/rpc/request-context.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  imageFinished,
  imageStarted,
  imagesPath,
  leastImagesBody,
  postImages,
  startImageServer,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import {
  errorOf,
  type GatewayServer,
  type ImageHandlers,
  RawConnection,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { allowedStatuses } from "../http/error-body.ts";
import { imagesBodySchema } from "./body.ts";

const maxBodyBytes = 1 << 20;
const image = Buffer.from("an image");

let gateway: GatewayServer;
/** What the stand-in does instead of drawing. */
let failure: DomainError | Error | undefined;
let calls: { request: GenerateRequest; context: HandlerContext }[] = [];
let refusal: DomainError | undefined;

const imageHandlers: ImageHandlers = {
  async *generate(request, context) {
    calls.push({ request, context });
    if (failure !== undefined) throw failure;
    yield imageStarted({ streaming: request.stream });
    for (let index = 0; index < (request.n ?? 1); index++) yield* wholeImage(index, image);
    yield imageFinished();
  },
};

beforeAll(async () => {
  gateway = await startGatewayServer({
    imageHandlers,
    settings: { maxBodyBytes },
    admissions: [
      async () => {
        if (refusal !== undefined) throw refusal;
      },
    ],
  });
});

beforeEach(() => {
  failure = undefined;
  refusal = undefined;
  calls = [];
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const bodyOf = (bytes: number) => {
  const body = { ...leastImagesBody, other: "" };
  return JSON.stringify({ ...body, other: "x".repeat(bytes - JSON.stringify(body).length) });
};

test("a request reaches the service under its id, with the deadline of images", async () => {
  const response = await postImages(gateway, leastImagesBody, { headers: { "x-request-id": "mine/1" } });
  expect(response.status).toBe(200);
  await response.text();
  expect(response.headers.get("x-request-id")).toBe("mine/1");
  const [call] = calls;
  expect(call?.request).toMatchObject(leastImagesBody);
  expect(call?.context.values.get(requestIdKey)).toBe("mine/1");
  expect(call?.context.timeoutMs()).toBeGreaterThan(100_000);
  expect(call?.context.timeoutMs()).toBeLessThanOrEqual(181_000);
});

test.for([
  [ErrorReason.INVALID_BODY, 400],
  [ErrorReason.SIZE_CONFLICT, 400],
  [ErrorReason.UNSUPPORTED_PARAMETER, 400],
  [ErrorReason.REFERENCE_REFUSED, 400],
  [ErrorReason.KEY_EXPIRED, 401],
  [ErrorReason.CREDITS_EXHAUSTED, 402],
  [ErrorReason.KEY_LIMIT_REACHED, 402],
  [ErrorReason.INFERENCE_KEY_REQUIRED, 403],
  [ErrorReason.SCOPE_MISSING, 403],
  [ErrorReason.MODEL_UNKNOWN, 404],
  [ErrorReason.NO_ENDPOINT_LEFT, 404],
  [ErrorReason.BODY_TOO_LARGE, 413],
  [ErrorReason.RATE_LIMITED, 429],
  [ErrorReason.TOO_MANY_IN_FLIGHT, 429],
  [ErrorReason.INTERNAL, 500],
  [ErrorReason.SERVICE_UNAVAILABLE, 500],
  [ErrorReason.KEY_UNKNOWN, 500],
  [ErrorReason.PROVIDER_FAILED, 502],
  [ErrorReason.PROVIDER_BAD_ANSWER, 502],
  [ErrorReason.CONTENT_POLICY, 502],
  [ErrorReason.TIMED_OUT, 524],
  [ErrorReason.PROVIDER_OVERLOADED, 529],
] as const)(
  "what the service refuses for reason %s is answered %s, streamed or not",
  async ([reason, status]) => {
    failure = new DomainError(reason, "the service's words", { retryAfterMs: 1500 });
    for (const stream of [false, true]) {
      const response = await postImages(gateway, { ...leastImagesBody, stream });
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(response.headers.get("retry-after")).toBe([429, 524, 529].includes(status) ? "2" : null);
      expect(await response.clone().text()).not.toContain("words");
      expect((await errorOf(response)).status).toBe(status);
    }
  },
);

test("what the service finds wrong with a reference is reported by the name that it has in the request", async () => {
  failure = DomainError.invalid([
    { path: "input_references.1", message: "is no image" },
    { path: "input_references", message: "are too many" },
  ]);
  const response = await postImages(gateway, leastImagesBody);
  expect(await response.json()).toMatchObject({
    error: {
      metadata: { issues: [{ path: "input_references.1.image_url.url" }, { path: "input_references" }] },
    },
  });
});

describe("the order of checks", () => {
  const invalid = { ...leastImagesBody, n: 0 };
  const tooLarge = bodyOf(maxBodyBytes + 1);
  const notJson = { "content-type": "text/plain" };

  test.for([
    ["no key before a large body", { authorization: "" }, tooLarge, 401, "key_missing"],
    ["an unknown key before a bad body", bearer(testKeys.unknown), invalid, 401, "key_unknown"],
    [
      "a management key before a bad body",
      bearer(testKeys.management),
      invalid,
      403,
      "inference_key_required",
    ],
    [
      "a management key before a large body",
      bearer(testKeys.management),
      tooLarge,
      403,
      "inference_key_required",
    ],
    ["a missing scope before a large body", bearer(testKeys.speech), tooLarge, 403, "scope_missing"],
    ["keys can't be checked", bearer(testKeys.down), leastImagesBody, 500, "service_unavailable"],
    ["a large body before its type", notJson, tooLarge, 413, "body_too_large"],
    ["a wrong type before bad fields", notJson, invalid, 400, "invalid_body"],
    ["bad fields before an unknown model", {}, { ...invalid, model: "no/such" }, 400, "invalid_body"],
    [
      "a bad reference before an unknown model",
      {},
      {
        ...leastImagesBody,
        model: "x".repeat(999),
        input_references: [{ type: "image_url", image_url: { url: "data:," } }],
      },
      400,
      "reference_refused",
    ],
    [
      "a name too long to be a model",
      {},
      { ...leastImagesBody, model: "x".repeat(999) },
      404,
      "model_unknown",
    ],
  ] as const)("%s", async ([, headers, body, status, reason]) => {
    const response = await postImages(gateway, body, { headers });
    expect(await errorOf(response)).toEqual({ status, reason });
    expect(calls).toEqual([]);
  });

  test("limits are asked after the privilege and before the body", async () => {
    refusal = new DomainError(ErrorReason.RATE_LIMITED, "slow down");
    expect((await errorOf(await postImages(gateway, tooLarge))).status).toBe(429);
    expect(
      (await errorOf(await postImages(gateway, tooLarge, { headers: bearer(testKeys.speech) }))).status,
    ).toBe(403);
  });
});

describe("a body", () => {
  const headers = { ...bearer(testKeys.images), "content-type": "application/json" };

  test("of the longest length is taken, one byte more is too large by its Content-Length alone", async () => {
    const longest = await postImages(gateway, bodyOf(maxBodyBytes));
    expect(longest.status).toBe(200);
    await longest.text();
    using client = new RawConnection(gateway);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    client.send(
      `POST ${imagesPath} HTTP/1.1\r\nHost: media.test\r\n${lines.join("")}Content-Length: ${maxBodyBytes + 1}\r\n\r\n`,
    );
    await waitUntil(() => client.received.includes("body_too_large"));
    expect(client.received).toMatch(/^HTTP\/1\.1 413 /);
  });

  test("of no announced length is too large once it has grown so", async () => {
    const sent = httpRequest({
      port: gateway.port,
      host: "127.0.0.1",
      path: imagesPath,
      method: "POST",
      headers,
    });
    sent.on("error", () => undefined);
    sent.write(bodyOf(maxBodyBytes));
    sent.write(" ");
    const [response] = (await once(sent, "response")) as [{ statusCode: number }];
    expect(response.statusCode).toBe(413);
    sent.destroy();
  });

  test("waits for room when too many are in flight; without room in time the answer is 500", async () => {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    const waiting: ImageHandlers = {
      async *generate(request, context) {
        running += 1;
        await gate.promise;
        yield* imageHandlers.generate?.(request, context) as AsyncIterable<never>;
      },
    };
    const bytes = maxBodyBytes / 2;
    await using busy = await startGatewayServer({
      imageHandlers: waiting,
      settings: { maxBodyBytes, maxInflightBodyBytes: 2 * bytes, bodyTimeoutMs: 1000 },
    });
    const inFlight = [postImages(busy, bodyOf(bytes)), postImages(busy, bodyOf(bytes))];
    await waitUntil(() => running === 2);
    const third = await postImages(busy, bodyOf(bytes));
    expect(await errorOf(third.clone())).toEqual({ status: 500, reason: "service_unavailable" });
    expect(await third.json()).toMatchObject({ error: { metadata: { retry_after_s: 1 } } });
    gate.resolve();
    for (const response of await Promise.all(inFlight))
      expect((await response.text()).length).toBeGreaterThan(0);
    const after = await postImages(busy, bodyOf(bytes));
    expect(after.status).toBe(200);
    await after.text();
  });

  test("that waits gets its room as soon as others have ended", async () => {
    const state = { running: 0, most: 0 };
    const counting: ImageHandlers = {
      async *generate(request, context) {
        state.running += 1;
        state.most = Math.max(state.most, state.running);
        yield* imageHandlers.generate?.(request, context) as AsyncIterable<never>;
        state.running -= 1;
      },
    };
    const bytes = maxBodyBytes / 2;
    await using busy = await startGatewayServer({
      imageHandlers: counting,
      settings: { maxBodyBytes, maxInflightBodyBytes: 2 * bytes },
    });
    const statuses = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const response = await postImages(busy, bodyOf(bytes));
        await response.text();
        return response.status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(state.most).toBeLessThanOrEqual(2);
  });
});

test("a service that can't be reached, or dies, is an internal error of this operation", async () => {
  const stopped = await startImageServer(imageHandlers);
  await stopped[Symbol.asyncDispose]();
  const dying = createServer((socket) => {
    socket.on("error", () => undefined).once("data", () => socket.destroy());
  });
  await once(dying.listen(0, "127.0.0.1"), "listening");
  const { port } = dying.address() as { port: number };
  for (const baseUrl of [stopped.baseUrl, `http://127.0.0.1:${port}`]) {
    await using away = await startGatewayServer({ imageTransport: createRemoteTransport({ baseUrl }) });
    expect(await errorOf(await postImages(away))).toEqual({ status: 500, reason: "service_unavailable" });
  }
  dying.close();
});

test("a request line leaves no prompt, reference or key in the log", async () => {
  const url = `data:image/png;base64,${Buffer.from("seashell picture").toString("base64")}`;
  const references = [{ type: "image_url", image_url: { url } }];
  await (
    await postImages(gateway, { ...leastImagesBody, prompt: "seashell", input_references: references })
  ).text();
  await (await postImages(gateway, { ...leastImagesBody, prompt: "seashell", size: "seashell" })).text();
  const all = JSON.stringify(gateway.logged);
  expect(all).toContain(`"route":"${imagesPath}"`);
  for (const secret of [
    "seashell",
    Buffer.from("seashell").toString("base64").slice(0, 8),
    testKeys.images,
  ]) {
    expect(all).not.toContain(secret);
  }
});

test("whatever a body holds, the answer is one of the contract's and never 500", async () => {
  const names = Object.keys(imagesBodySchema.properties);
  const words = fc.constantFrom("auto", "png", "svg", "2K", "1:1", "1024x1024", 1, true, [], {}, null);
  const fields = fc.dictionary(fc.constantFrom(...names, "other"), fc.oneof(fc.jsonValue(), words));
  const text = fc.oneof(
    { weight: 1, arbitrary: fc.oneof(fc.json(), fc.string()) },
    { weight: 4, arbitrary: fields.map((some) => JSON.stringify({ ...some, ...leastImagesBody })) },
    { weight: 1, arbitrary: fields.map((some) => JSON.stringify(some)) },
  );
  const seen = new Set<number>();
  await fc.assert(
    fc.asyncProperty(text, async (body) => {
      const response = await postImages(gateway, body);
      seen.add(response.status);
      await response.text();
    }),
    { numRuns: 300 },
  );
  expect([...seen].filter((status) => ![200, 400, 404].includes(status))).toEqual([]);
  expect(seen).toContain(200);
  expect(seen).toContain(400);
  expect([400, 404].every((status) => allowedStatuses("images").includes(status))).toBe(true);
});
