import type { TSchema } from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { allowedStatuses, messageOfStatus } from "../http/error-body.ts";
import type { Route } from "../http/route.ts";
import { errorBodySchema } from "./error-schema.ts";
import type { ExampleModels } from "./example-models.ts";
import type { ContentDocument, NamedSchema, ParameterDocument, RouteDocument } from "./route-document.ts";

/** Where the API's paths begin. */
export const apiPath = "/api/v1";

/** An OpenAPI 3.1 document, as far as anybody here looks into it. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: Readonly<Record<string, string>>;
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components: Readonly<Record<string, unknown>>;
}

/**
 * The server relative to where the document lies, so that it is found by whatever name, address or path of a proxy the
 * document was, and what tries an operation out stays with one origin.
 */
const servers = [{ url: `../${apiPath.split("/").at(-1)}` }];

const about = `Speech and images from many providers behind one interface.

Send \`Authorization: Bearer <API key>\` with every request. Inference keys of scope \`speech\` or \`images\` make things;
any key may list models and look up what its account generated. Management keys see activity and credits and manage keys,
provider keys and destinations; they generate nothing. Every answer carries \`X-Request-Id\`: yours, if you sent a valid one.

Unknown fields of a body are ignored and null counts as absent, unless the field's schema gives null a meaning. A body
has at most 1,024 members and items in all, on at most 64 levels. No text has half of a surrogate pair. Errors have one shape; \`error.code\` is the HTTP status
and \`error.metadata.reason\` a word of a closed list.`;

const headers = {
  "X-Request-Id": header("string", "Names the request in logs and support."),
  "X-Generation-Id": header("string", "Names the generation in usage, traces and destinations."),
  "X-Ignored-Parameters": header("string", "Names of parameters that had no effect, with commas between."),
  "X-Unrecognized-Prompt-Words": header(
    "string",
    "Words of the prompt that the provider says it did not understand, percent-encoded, with commas between; most say nothing.",
  ),
  "X-Audio-Sample-Rate": header("integer", "Samples a second of one channel."),
  "X-Audio-Channels": header("integer", "1 for mono, 2 for interleaved stereo."),
  "X-Should-Retry": header(
    "string",
    "`false`: the same request would fail again; `true`: it may succeed. Clients of the OpenAI kind go by it.",
  ),
  "Retry-After": header("integer", "When a retry may succeed, seconds."),
  "WWW-Authenticate": header("string", "`Bearer`."),
};

/** Headers that errors of a status may carry besides those that name the request and what was begun for it. */
const errorHeaders: Readonly<Record<number, readonly string[]>> = {
  401: ["WWW-Authenticate"],
  429: ["Retry-After"],
  503: ["Retry-After"],
  524: ["Retry-After"],
  529: ["Retry-After"],
};

/** What a status most often means. */
const exampleReasons: Readonly<Record<number, ErrorReason>> = {
  400: ErrorReason.INVALID_BODY,
  401: ErrorReason.KEY_MISSING,
  402: ErrorReason.CREDITS_EXHAUSTED,
  403: ErrorReason.SCOPE_MISSING,
  404: ErrorReason.MODEL_UNKNOWN,
  409: ErrorReason.COUNT_LIMIT_REACHED,
  413: ErrorReason.BODY_TOO_LARGE,
  429: ErrorReason.RATE_LIMITED,
  502: ErrorReason.PROVIDER_FAILED,
  503: ErrorReason.SERVICE_UNAVAILABLE,
  524: ErrorReason.TIMED_OUT,
  529: ErrorReason.PROVIDER_OVERLOADED,
};

/** The OpenAPI 3.1 document of the routes that have one, with the very schemas that check their bodies. */
export function createOpenApiDocument(
  routes: readonly Route[],
  { creditsUrl, models }: { creditsUrl: string; models: ExampleModels },
): OpenApiDocument {
  const schemas: Record<string, TSchema> = { Error: errorBodySchema };
  const statuses = new Set<number>();
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    if (route.document === undefined) continue;
    const errors = errorsOf(route, route.document);
    for (const status of errors) statuses.add(status);
    for (const named of schemasOf(route.document)) addSchema(schemas, named);
    const path = route.path.slice(apiPath.length).replace(/:(\w+)/g, "{$1}");
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: toOperation(route, route.document, errors, models),
    };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Media gateway", version: "1", description: about },
    servers,
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "An API key." } },
      headers,
      schemas,
      responses: Object.fromEntries(
        [...statuses].map((status) => [`Error${status}`, toErrorResponse(status, creditsUrl)]),
      ),
    },
  };
}

/** Operations of tables of their own may answer all that stands there. */
function errorsOf({ operation, access }: Route, document: RouteDocument): readonly number[] {
  if (operation === "unrouted") return [];
  if (operation !== "management") return allowedStatuses(operation);
  const { parameters = [], body, errors = [] } = document;
  const reads = (place: ParameterDocument["in"]) => parameters.some((parameter) => parameter.in === place);
  return [
    ...(body !== undefined || reads("query") ? [400] : []),
    401,
    ...(access === "management" ? [403] : []),
    ...(reads("path") ? [404] : []),
    ...errors,
    500,
  ];
}

function addSchema(schemas: Record<string, TSchema>, { name, schema }: NamedSchema): void {
  schemas[name] ??= schema;
  if (schemas[name] !== schema) throw new Error(`two schemas of the name ${name}`);
}

function schemasOf({ body, answer }: RouteDocument) {
  const schemas = Object.values(answer.content).map(({ schema }) => schema);
  return [body, body?.form, ...schemas].filter((schema) => schema !== undefined);
}

function toOperation(
  route: Route,
  document: RouteDocument,
  errors: readonly number[],
  models: ExampleModels,
) {
  const { id, tag, summary, description, parameters = [], body, answer } = document;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: route.access === "open" ? [] : [{ bearer: [] }],
    ...(parameters.length === 0
      ? {}
      : { parameters: parameters.map((parameter) => toParameter(parameter, models)) }),
    ...(body === undefined ? {} : { requestBody: toRequestBody(body, models) }),
    responses: {
      [answer.status ?? 200]: {
        description: answer.description,
        headers: headerRefs(answer.headers),
        content: Object.fromEntries(
          Object.entries(answer.content).map(([type, content]) => [type, toContent(content)]),
        ),
      },
      ...Object.fromEntries(
        errors.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]),
      ),
    },
  };
}

function toRequestBody(body: NonNullable<RouteDocument["body"]>, models: ExampleModels) {
  return {
    required: body.isOptional !== true,
    content: {
      "application/json": { schema: refTo(body.name), examples: toExamples(body.examples(models)) },
      ...(body.form === undefined ? {} : { "multipart/form-data": { schema: refTo(body.form.name) } }),
    },
  };
}

function toParameter({ example, ...parameter }: ParameterDocument, models: ExampleModels) {
  return {
    ...parameter,
    required: parameter.in === "path" || parameter.required === true,
    ...(example === undefined ? {} : { example: example(models) }),
  };
}

function toContent({ schema, example }: ContentDocument) {
  return {
    schema: schema === undefined ? { type: "string", format: "binary" } : refTo(schema.name),
    ...(example === undefined ? {} : { example }),
  };
}

function toExamples(examples: Readonly<Record<string, unknown>>) {
  return Object.fromEntries(Object.entries(examples).map(([summary, value]) => [summary, { value }]));
}

function toErrorResponse(status: number, creditsUrl: string) {
  const message = messageOfStatus(status, creditsUrl);
  const reason = wordOfReason(exampleReasons[status] ?? ErrorReason.INTERNAL);
  const example = { error: { code: status, message, metadata: { reason } } };
  return {
    description: message,
    headers: headerRefs(["X-Generation-Id", "X-Should-Retry", ...(errorHeaders[status] ?? [])]),
    content: { "application/json": { schema: refTo("Error"), example } },
  };
}

function header(type: "string" | "integer", description: string) {
  return { description, schema: { type } };
}

function headerRefs(names: readonly string[] = []) {
  const refs = ["X-Request-Id", ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  return Object.fromEntries(refs);
}

function refTo(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}
