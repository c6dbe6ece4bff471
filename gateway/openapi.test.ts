import { createParser } from "eventsource-parser";
import Schema from "typebox/schema";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import {
  imageFinished,
  imagePartial,
  imageStarted,
  imageText,
  leastImagesBody,
  wholeImage,
} from "../test/support/gateway-images.ts";
import {
  bytesFrame,
  finishedFrame,
  type GatewayServer,
  startedFrame,
  startGatewayServer,
  testKeys,
} from "../test/support/gateway-server.ts";
import { imageModelFixture, speechModelFixture } from "../test/support/model-fixtures.ts";
import { allowedStatuses } from "./error-body.ts";
import { imagesBodySchema } from "./images-body.ts";
import { speechBodySchema } from "./speech-body.ts";

interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly examples: Readonly<Record<string, { value: unknown }>> }>
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

beforeAll(async () => {
  const fail = () => {
    if (failure !== undefined) throw failure;
  };
  gateway = await startGatewayServer({
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
        yield imageStarted({ streaming: stream, ignoredParameters: ["quality"] });
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

/** One request for each operation that needs a key. */
const requests = [
  ["/audio/speech", "post", { model: "acme/voice", input: "Hello." }, testKeys.speech],
  ["/images", "post", leastImagesBody, testKeys.images],
  ["/images", "post", { ...leastImagesBody, stream: true }, testKeys.images],
  ["/models", "get", undefined, testKeys.images],
  ["/images/models", "get", undefined, testKeys.images],
  ["/images/models/{author}/{slug}/endpoints", "get", undefined, testKeys.images],
] as const;

function send(
  [path, method, body, key]: (typeof requests)[number],
  change: { body?: string; key?: string } = {},
) {
  const url = `${gateway.baseUrl}/api/v1${path.replace("{author}", "acme").replace("{slug}", "brush")}`;
  return fetch(url, {
    method: method.toUpperCase(),
    headers: { authorization: `Bearer ${change.key ?? key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: change.body ?? JSON.stringify(body) }),
  });
}

describe("the document", () => {
  test("needs no key and names every operation of the API once", async () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.servers).toEqual([{ url: "https://media.test/api/v1" }]);
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({ at: `${method} ${path}`, operationId })),
    );
    expect(operations.map(({ at }) => at)).toEqual([
      "post /audio/speech",
      "post /images",
      "get /models",
      "get /images/models",
      "get /images/models/{author}/{slug}/endpoints",
      "get /openapi.json",
    ]);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  });

  test("holds no reference that leads nowhere or outside", () => {
    const text = JSON.stringify(document);
    const refs = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, $ref = ""]) => $ref);
    expect(refs.length).toBeGreaterThan(20);
    for (const $ref of refs) expect(resolve({ $ref })).toBeDefined();
  });

  test("shows the very schemas that check bodies", () => {
    const { SpeechRequest, ImagesRequest } = document.components.schemas;
    expect(SpeechRequest).toEqual(JSON.parse(JSON.stringify(speechBodySchema)));
    expect(ImagesRequest).toEqual(JSON.parse(JSON.stringify(imagesBodySchema)));
  });

  test("lists the errors that the operations may answer", () => {
    const statusesOf = (path: string) =>
      Object.keys(document.paths[path]?.post?.responses ?? {})
        .map(Number)
        .filter((status) => status !== 200);
    expect(statusesOf("/audio/speech")).toEqual(allowedStatuses("speech"));
    expect(statusesOf("/images")).toEqual(allowedStatuses("images"));
  });

  test("has examples that keep its schemas", () => {
    const { schemas, responses } = document.components;
    for (const { content } of Object.values(responses)) {
      const { schema, example } = content?.["application/json"] ?? {};
      expect(example).toBeDefined();
      expect(faultsOf(schema ?? {}, example)).toEqual([]);
    }
    for (const [path, name] of [
      ["/audio/speech", "SpeechRequest"],
      ["/images", "ImagesRequest"],
    ] as const) {
      const examples = document.paths[path]?.post?.requestBody?.content["application/json"]?.examples ?? {};
      expect(Object.keys(examples).length).toBeGreaterThan(1);
      for (const { value } of Object.values(examples))
        expect(faultsOf(schemas[name] ?? {}, value)).toEqual([]);
    }
    for (const { schema, example } of Object.values(
      document.paths["/images"]?.post?.responses[200]?.content ?? {},
    )) {
      expect(faultsOf(schema, example)).toEqual([]);
    }
  });
});

describe.for(requests)("answers of %s", (request) => {
  const [path, method, body] = request;

  test("are what the document says when all is well", async () => {
    failure = undefined;
    await checkAnswer(path, method, await send(request));
  });

  test("are what the document says for every error", async () => {
    const answers = [await send(request, { key: testKeys.unknown })];
    if (body !== undefined) answers.push(await send(request, { body: "{}" }));
    for (const reason of Object.values(ErrorReason)) {
      failure = new DomainError(reason, "no", {
        retryAfterMs: 1500,
        generationId: "gen-1",
        issues: [{ path: "n", message: "is too large" }],
        attempts: [
          { providerName: "Acme", endpointId: "e", providerStatus: 0, reason: ErrorReason.TIMED_OUT },
          { providerName: "Acme", endpointId: "f", providerStatus: 500, reason: ErrorReason.PROVIDER_FAILED },
        ],
      });
      // The lists are asked with nothing that a service could refuse.
      if (body === undefined && reason !== ErrorReason.SERVICE_UNAVAILABLE) continue;
      answers.push(await send(request));
    }
    for (const answer of answers) await checkAnswer(path, method, answer);
  });
});

test("other answers are what the document says, too", async () => {
  failure = undefined;
  const pcm = { model: "acme/voice", input: "Hello.", response_format: "pcm" };
  const broken = { ...leastImagesBody, prompt: "broken", stream: true };
  const [speech, , images] = requests;
  await checkAnswer("/audio/speech", "post", await send(speech, { body: JSON.stringify(pcm) }));
  await checkAnswer("/images", "post", await send(images, { body: JSON.stringify(broken) }));
  const headers = { authorization: `Bearer ${testKeys.images}` };
  const unknown = await fetch(`${gateway.baseUrl}/api/v1/models?output_modalities=text`, { headers });
  await checkAnswer("/models", "get", unknown);
  const none = await fetch(`${gateway.baseUrl}/api/v1/images/models/acme/none/endpoints`, { headers });
  await checkAnswer("/images/models/{author}/{slug}/endpoints", "get", none);
  await checkAnswer("/openapi.json", "get", await fetch(`${gateway.baseUrl}/api/v1/openapi.json`));
});
