import { createParser } from "eventsource-parser";
import Type, { type TSchema } from "typebox";
import Schema from "typebox/schema";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { imageModelFixture, speechModelFixture } from "../../test/fakes/model-fixtures.ts";
import { recordServices } from "../../test/fakes/record-services.ts";
import { apiOperations } from "../../test/support/api-operations.ts";
import {
  imageFinished,
  imagePartial,
  imageStarted,
  imageText,
  leastImagesBody,
  wholeImage,
} from "../../test/support/services/gateway-images.ts";
import {
  bytesFrame,
  finishedFrame,
  type GatewayServer,
  startedFrame,
  startGatewayServer,
  testKeys,
} from "../../test/support/services/gateway-server.ts";
import { providerKeyBodySchema, providerKeyChangeSchema } from "../byok/body.ts";
import { createDestinationBodySchema, updateDestinationBodySchema } from "../destinations/body.ts";
import type { Route } from "../http/route.ts";
import { imagesBodySchema } from "../images/body.ts";
import { createKeyBodySchema, rotateKeyBodySchema, updateKeyBodySchema } from "../keys/body.ts";
import { speechBodySchema } from "../speech/body.ts";
import { createOpenApiDocument } from "./openapi.ts";
import { jsonAnswer } from "./route-document.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly object[];
  readonly security: readonly object[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<
      Record<
        string,
        { readonly schema: object; readonly examples: Readonly<Record<string, { value: unknown }>> }
      >
    >;
  };
  readonly responses: Readonly<Record<string, Resolvable>>;
}

interface Resolvable {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
}

interface Document {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: Readonly<Record<string, Resolvable>>;
  };
}

const image = Buffer.from("an image");

let gateway: GatewayServer;
let document: Document;
/** What the services do instead of their work. */
let failure: Error | undefined;

const fail = () => {
  if (failure !== undefined) throw failure;
};

function answering<A>(answer: A) {
  return () => {
    fail();
    return answer;
  };
}

const recordHandlers = recordServices(answering);

beforeAll(async () => {
  gateway = await startGatewayServer({
    ...recordHandlers,
    handlers: {
      async *synthesize(request) {
        fail();
        yield startedFrame({ format: request.responseFormat, ignoredParameters: ["speed"] });
        yield bytesFrame(image);
        yield finishedFrame();
      },
      listSpeechModels() {
        fail();
        return { models: [speechModelFixture] };
      },
    },
    imageHandlers: {
      async *generate({ stream, prompt }) {
        fail();
        yield imageStarted({
          streaming: stream,
          ignoredParameters: ["quality"],
          unrecognizedPromptWords: ["gryphon"],
        });
        yield imagePartial(0, image);
        yield imageText("<svg>");
        yield* wholeImage(0, image);
        if (prompt === "broken") throw new DomainError(ErrorReason.PROVIDER_FAILED, "broke");
        yield imageFinished();
      },
      listImageModels() {
        fail();
        return { models: [imageModelFixture] };
      },
    },
  });
  document = (await (await fetch(`${gateway.baseUrl}/api/v1/openapi.json`)).json()) as Document;
});

afterAll(() => gateway.close({ delayMs: 0, timeoutMs: 0 }));

/** What a JSON pointer of the document leads to. */
function resolve<T extends Resolvable>(value: T): T {
  if (value.$ref === undefined) return value;
  const found = value.$ref
    .slice(2)
    .split("/")
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);
  if (found === undefined) throw new Error(`${value.$ref} leads nowhere`);
  return found as T;
}

/** What a schema of the document finds wrong with a value. */
function faultsOf(schema: object, value: unknown): unknown[] {
  const [isValid, errors] = Schema.Compile({ ...schema, components: document.components }).Errors(value);
  return isValid ? [] : errors;
}

/** An answer's body as its content type means it: events as a list of their data. */
async function bodiesOf(response: Response): Promise<unknown[]> {
  const text = await response.text();
  if (response.headers.get("content-type") === "application/json") return [JSON.parse(text)];
  const bodies: unknown[] = [];
  const parser = createParser({ onEvent: ({ data }) => data !== "[DONE]" && bodies.push(JSON.parse(data)) });
  parser.feed(text);
  return bodies;
}

const headersOfTransport =
  /^(date|connection|keep-alive|transfer-encoding|content-length|content-type|cache-control)$/;

/** Checks an answer against what the document says of its operation. */
async function checkAnswer(path: string, method: string, response: Response): Promise<void> {
  const operation = document.paths[path]?.[method];
  const described = resolve(operation?.responses[response.status] ?? {});
  const contentType = response.headers.get("content-type") ?? "";
  const content = described.content?.[contentType];
  expect(content, `${response.status} ${contentType} of ${path}`).toBeDefined();
  const named = new Set(Object.keys(described.headers ?? {}).map((name) => name.toLowerCase()));
  const sent = [...response.headers.keys()].filter((name) => !headersOfTransport.test(name));
  expect(sent.filter((name) => !named.has(name))).toEqual([]);
  if (contentType.startsWith("audio/")) {
    expect(Buffer.from(await response.arrayBuffer())).toEqual(image);
    return;
  }
  const bodies = await bodiesOf(response);
  expect(bodies.length).toBeGreaterThan(0);
  for (const body of bodies) expect(faultsOf(content?.schema ?? {}, body)).toEqual([]);
}

/** A request to each operation that needs a key, and what its service may refuse it for. */
interface Asked {
  readonly path: string;
  readonly method: "get" | "post" | "patch" | "delete";
  readonly body?: object;
  readonly key: string;
  readonly query?: string;
  readonly reasons: readonly ErrorReason[];
}

const everyReason = Object.values(ErrorReason);
const {
  RECORD_UNKNOWN,
  INVALID_BODY,
  COUNT_LIMIT_REACHED,
  LAST_MANAGEMENT_KEY,
  SERVICE_UNAVAILABLE,
  KEY_EXPIRED,
} = ErrorReason;
const always = [SERVICE_UNAVAILABLE, KEY_EXPIRED, ErrorReason.TIMED_OUT, ErrorReason.INTERNAL];

const speech = {
  path: "/audio/speech",
  method: "post",
  body: { model: "acme/voice", input: "Hello." },
  key: testKeys.speech,
  reasons: everyReason,
} as const;
const images = {
  path: "/images",
  method: "post",
  body: leastImagesBody,
  key: testKeys.images,
  reasons: everyReason,
} as const;

const pictureUrl = "data:image/png;base64,iVBORw0KGgo=";

const list = (path: string): Asked => ({
  path,
  method: "get",
  key: testKeys.images,
  reasons: [SERVICE_UNAVAILABLE],
});

const managed = (
  method: Asked["method"],
  path: string,
  reasons: ErrorReason[] = [],
  body?: object,
): Asked => ({
  path,
  method,
  key: testKeys.management,
  reasons: [...always, ...reasons],
  ...(body === undefined ? {} : { body }),
});

const destinations = "/observability/destinations";

const requests: readonly Asked[] = [
  speech,
  images,
  { ...images, body: { ...leastImagesBody, stream: true } },
  { ...images, path: "/images/generations" },
  { ...images, path: "/images/generations", body: { ...leastImagesBody, stream: true } },
  { ...images, path: "/images/edits", body: { ...leastImagesBody, images: [{ image_url: pictureUrl }] } },
  list("/models"),
  list("/models/{author}/{slug}"),
  list("/audio/voices"),
  list("/models/user"),
  list("/models/count"),
  list("/model/{author}/{slug}"),
  list("/models/{author}/{slug}/endpoints"),
  list("/providers"),
  list("/images/models"),
  list("/images/models/{author}/{slug}/endpoints"),
  managed("get", "/activity", [INVALID_BODY]),
  { ...managed("get", "/generation", [RECORD_UNKNOWN]), query: "?id=gen-1" },
  { ...managed("get", "/activity/series", [INVALID_BODY]), query: "?step=day" },
  managed("get", "/generations", [INVALID_BODY]),
  managed("get", "/keys", [INVALID_BODY]),
  managed("post", "/keys", [INVALID_BODY, COUNT_LIMIT_REACHED], { name: "a" }),
  managed("get", "/keys/{hash}", [RECORD_UNKNOWN]),
  managed("patch", "/keys/{hash}", [INVALID_BODY, RECORD_UNKNOWN, LAST_MANAGEMENT_KEY], { name: "a" }),
  managed("delete", "/keys/{hash}", [RECORD_UNKNOWN, LAST_MANAGEMENT_KEY]),
  managed("post", "/keys/{hash}/rotate", [INVALID_BODY, RECORD_UNKNOWN, COUNT_LIMIT_REACHED], { grace_s: 1 }),
  managed("get", "/key", [RECORD_UNKNOWN]),
  managed("get", "/credits"),
  managed("get", "/credits/ledger", [INVALID_BODY]),
  managed("get", "/byok"),
  managed("post", "/byok", [INVALID_BODY, COUNT_LIMIT_REACHED], { provider: "acme", key: "k" }),
  managed("get", "/byok/{id}", [RECORD_UNKNOWN]),
  managed("patch", "/byok/{id}", [INVALID_BODY, RECORD_UNKNOWN], { name: "a" }),
  managed("delete", "/byok/{id}", [RECORD_UNKNOWN]),
  managed("get", destinations, [INVALID_BODY]),
  managed("post", destinations, [INVALID_BODY, COUNT_LIMIT_REACHED], { type: "a", name: "a", config: {} }),
  managed("get", `${destinations}/{id}`, [RECORD_UNKNOWN]),
  managed("patch", `${destinations}/{id}`, [INVALID_BODY, RECORD_UNKNOWN], { name: "a" }),
  managed("delete", `${destinations}/{id}`, [RECORD_UNKNOWN]),
  managed("post", `${destinations}/{id}/test`, [RECORD_UNKNOWN]),
  managed("get", `${destinations}/{id}/deliveries`, [INVALID_BODY, RECORD_UNKNOWN]),
  managed("post", `${destinations}/{id}/resume`, [RECORD_UNKNOWN]),
];

const pathParts: Readonly<Record<string, string>> = {
  author: "acme",
  slug: "brush",
  hash: "cd".repeat(32),
  id: "b0a3c1de-7d51-4c36-9f0c-7b6f7c0b5a10",
};

function send({ path, method, body, key, query = "" }: Asked, change: { body?: string; key?: string } = {}) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => pathParts[name] ?? "");
  return fetch(`${gateway.baseUrl}/api/v1${filled}${query}`, {
    method: method.toUpperCase(),
    headers: { authorization: `Bearer ${change.key ?? key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: change.body ?? JSON.stringify(body) }),
  });
}

describe("the document", () => {
  test("needs no key and names every operation of the API once", async () => {
    expect(document.openapi).toBe("3.1.0");
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({ at: `${method} ${path}`, operationId })),
    );
    expect(operations.map(({ at }) => at)).toEqual(apiOperations);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  });

  test.for(["http://127.0.0.1:8080", "http://[::1]:8080", "https://proxy.test/media"])(
    "finds its server beside itself: %s",
    (origin) => {
      expect(document.servers.map(({ url }) => new URL(url, `${origin}/api/v1/openapi.json`).href)).toEqual([
        `${origin}/api/v1`,
      ]);
    },
  );

  test("holds no reference that leads nowhere or outside", () => {
    const text = JSON.stringify(document);
    const refs = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, $ref = ""]) => $ref);
    expect(refs.length).toBeGreaterThan(20);
    for (const $ref of refs) expect(resolve({ $ref })).toBeDefined();
  });

  test("shows the very schemas that check bodies", () => {
    for (const [name, schema] of Object.entries({
      SpeechRequest: speechBodySchema,
      ImagesRequest: imagesBodySchema,
      KeyRequest: createKeyBodySchema,
      KeyChange: updateKeyBodySchema,
      KeyRotation: rotateKeyBodySchema,
      ProviderKeyRequest: providerKeyBodySchema,
      ProviderKeyChange: providerKeyChangeSchema,
      DestinationRequest: createDestinationBodySchema,
      DestinationChange: updateDestinationBodySchema,
    })) {
      expect(document.components.schemas[name], name).toEqual(JSON.parse(JSON.stringify(schema)));
    }
  });

  test("says what must be given", () => {
    const { get } = document.paths["/generation"] ?? {};
    expect(get?.parameters).toMatchObject([{ name: "id", in: "query", required: true }]);
    const { post: rotate } = document.paths["/keys/{hash}/rotate"] ?? {};
    expect(rotate?.requestBody?.required).toBe(false);
    expect(document.paths["/keys"]?.post?.requestBody?.required).toBe(true);
  });

  test("names models that are there in the examples of what makes something", () => {
    const modelsOf = (path: string) => {
      const { examples } = document.paths[path]?.post?.requestBody?.content["application/json"] ?? {};
      return Object.values(examples ?? {}).map(({ value }) => (value as { model: string }).model);
    };
    const { id: speaks } = speechModelFixture;
    const { id: draws } = imageModelFixture;
    expect(modelsOf("/audio/speech")).toEqual([speaks, speaks]);
    for (const path of ["/images", "/images/generations", "/images/edits"]) {
      expect(modelsOf(path), path).toEqual([draws, draws]);
    }
    expect(document.paths["/models/{author}/{slug}"]?.get?.parameters).toMatchObject(
      draws.split("/").map((example) => ({ example })),
    );
  });

  test("has examples that keep its schemas", () => {
    const { components, paths } = document;
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const examples = [...Object.values(components.responses), ...operations.flatMap(wholeAnswers)]
      .flatMap(({ content }) => Object.values(content ?? {}))
      .filter(({ example }) => example !== undefined);
    expect(examples.length).toBeGreaterThan(20);
    for (const { schema, example } of examples) expect(faultsOf(schema, example)).toEqual([]);
    for (const { content } of Object.values(components.responses)) {
      expect(content?.["application/json"]?.example).toBeDefined();
    }
    for (const { requestBody } of operations) {
      if (requestBody === undefined) continue;
      const { schema, examples: bodies } = requestBody.content["application/json"] ?? {};
      expect(Object.keys(bodies ?? {}).length).toBeGreaterThan(1);
      for (const { value } of Object.values(bodies ?? {})) {
        expect(faultsOf(schema ?? {}, value)).toEqual([]);
      }
    }
  });
});

/** What an operation answers when all is well. */
function wholeAnswers({ responses }: Operation): Resolvable[] {
  return Object.entries(responses).flatMap(([status, response]) => (status < "300" ? [response] : []));
}

test("a document in which one name means two schemas is not made", () => {
  const route = (schema: TSchema): Route => ({
    method: "GET",
    path: "/api/v1/a",
    operation: "management",
    access: "any",
    document: {
      id: "a",
      tag: "a",
      summary: "a",
      description: "a",
      answer: jsonAnswer("a", "A", schema, {}),
    },
    handle: async () => undefined,
  });
  const urls = {
    creditsUrl: "https://media.test/credits",
    models: { speech: { model: "a/a", voice: "a" }, image: { model: "a/b" } },
  };
  const schema = Type.Object({});
  expect(() => createOpenApiDocument([route(schema), route(schema)], urls)).not.toThrow();
  expect(() => createOpenApiDocument([route(schema), route(Type.Object({}))], urls)).toThrow("A");
});

describe.for(requests)("answers of $method $path", (request) => {
  const { path, method, body, reasons } = request;

  test("are what the document says when all is well", async () => {
    failure = undefined;
    await checkAnswer(path, method, await send(request));
  });

  test("are what the document says for every error", async () => {
    failure = undefined;
    const answers = [await send(request, { key: testKeys.unknown })];
    if (body !== undefined) answers.push(await send(request, { body: "[]" }));
    if (request.key === testKeys.management) answers.push(await send(request, { key: testKeys.speech }));
    for (const reason of reasons) {
      failure = new DomainError(reason, "no", {
        retryAfterMs: 1500,
        generationId: "gen-1",
        issues: [{ path: "n", message: "is too large" }],
        attempts: [
          { providerName: "Acme", endpointId: "e", providerStatus: 0, reason: ErrorReason.TIMED_OUT },
          { providerName: "Acme", endpointId: "f", providerStatus: 500, reason: ErrorReason.PROVIDER_FAILED },
        ],
      });
      answers.push(await send(request));
    }
    for (const answer of answers) await checkAnswer(path, method, answer);
  });
});

test("other answers are what the document says, too", async () => {
  failure = undefined;
  const pcm = { model: "acme/voice", input: "Hello.", response_format: "pcm" };
  const broken = { ...leastImagesBody, prompt: "broken", stream: true };
  await checkAnswer("/audio/speech", "post", await send(speech, { body: JSON.stringify(pcm) }));
  await checkAnswer("/images", "post", await send(images, { body: JSON.stringify(broken) }));
  const headers = { authorization: `Bearer ${testKeys.images}` };
  const unknown = await fetch(`${gateway.baseUrl}/api/v1/models?output_modalities=texts`, { headers });
  await checkAnswer("/models", "get", unknown);
  const none = await fetch(`${gateway.baseUrl}/api/v1/images/models/acme/none/endpoints`, { headers });
  await checkAnswer("/images/models/{author}/{slug}/endpoints", "get", none);
  await checkAnswer("/openapi.json", "get", await fetch(`${gateway.baseUrl}/api/v1/openapi.json`));
});
