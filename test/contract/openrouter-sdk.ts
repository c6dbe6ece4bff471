import { HTTPClient, OpenRouter } from "@openrouter/sdk";
import { openPythonClient } from "./python-client.ts";

/** How a call ended: the value as JSON with names as on the wire, or the error that the client threw. */
export type SdkOutcome =
  | { readonly value: Record<string, unknown> }
  | { readonly error: { readonly status: number; readonly name: string; readonly message: string } };

/** One call of a client, under the names that the Python package uses. */
export interface SdkCall {
  readonly key: string;
  /** Such as `api_keys.create`. */
  readonly method: string;
  /** What goes into path and query. */
  readonly args?: Readonly<Record<string, unknown>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** A client of OpenRouter's, whatever its language. */
export interface OpenRouterSdk {
  /** Every method that it has, by reflection, under the names that the Python package uses. */
  methods(): Promise<readonly string[]>;
  call(call: SdkCall): Promise<SdkOutcome>;
  close(): Promise<void>;
}

/** PyPI's `openrouter` at a base URL. */
export function pythonOpenRouter(baseUrl: string): OpenRouterSdk {
  const session = openPythonClient("openrouter_calls.py");
  return {
    methods: async () => (await session.ask({ methods: true })) as string[],
    async call({ key, method, args = {}, body = {} }) {
      const isUser = method === "models.list_for_user";
      // `type` is a word of the language's.
      const { type, ...rest } = { type: undefined, ...body };
      const more = {
        ...(isUser ? { security: { bearer: key } } : {}),
        ...(type === undefined ? {} : { type_: type }),
      };
      const options = { ...args, ...rest, ...more };
      return (await session.ask({ base_url: baseUrl, key, method, arguments: options })) as SdkOutcome;
    },
    close: () => session.close(),
  };
}

/** Under which name the npm package takes the body of a method. */
const bodyNames: Readonly<Record<string, string>> = {
  "tts.create_speech": "speechRequest",
  "images.generate": "imageGenerationRequest",
  "stt.create_transcription": "sttRequest",
  "stt.create_transcription_multipart": "requestBody",
  "analytics.query_analytics": "requestBody",
  "generations.submit_feedback": "submitGenerationFeedbackRequest",
  "api_keys.create": "requestBody",
  "api_keys.update": "requestBody",
  "byok.create": "createBYOKKeyRequest",
  "byok.update": "updateBYOKKeyRequest",
  "observability.create": "createObservabilityDestinationRequest",
  "observability.update": "updateObservabilityDestinationRequest",
};

/** npm's `@openrouter/sdk` at a base URL. */
export function npmOpenRouter(baseUrl: string): OpenRouterSdk {
  return {
    methods: async () => methodsOf(new OpenRouter({ apiKey: "none" }), "").map(toSnake),
    async call({ key, method, args = {}, body }) {
      let generationId: string | null = null;
      const httpClient = new HTTPClient().addHook("response", ({ headers }) => {
        generationId = headers.get("x-generation-id");
      });
      const retryConfig = { strategy: "none" } as const;
      const sdk = new OpenRouter({ apiKey: key, serverURL: baseUrl, httpClient, retryConfig });
      const wrapped = body === undefined ? {} : { [bodyNames[method] ?? ""]: toCamel(body) };
      const request = { ...(toCamel(args) as object), ...wrapped };
      const security = method === "models.list_for_user" ? [{ bearer: key }] : [];
      try {
        const { owner, run } = methodOf(sdk, method);
        return { value: await plain(await run.call(owner, ...security, request), () => generationId) };
      } catch (thrown) {
        return { error: failureOf(thrown) };
      }
    },
    close: async () => undefined,
  };
}

function methodsOf(sdk: object, prefix: string): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(sdk))).flatMap(
    ([name, { get, value }]) => {
      if (name === "constructor" || name.startsWith("_")) return [];
      if (get !== undefined) return methodsOf(get.call(sdk) as object, `${prefix}${name}.`);
      return typeof value === "function" ? [prefix + name] : [];
    },
  );
}

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>;

function methodOf(sdk: object, method: string): { owner: unknown; run: Method } {
  let owner: unknown;
  let found: unknown = sdk;
  for (const part of method.split(".")) {
    owner = found;
    found = (found as Record<string, unknown>)[camelName(part)];
  }
  if (typeof found !== "function") throw new TypeError(`no method ${method}`);
  return { owner, run: found as Method };
}

async function plain(value: unknown, generationId: () => string | null): Promise<Record<string, unknown>> {
  if (value instanceof ReadableStream && !("toReadableStream" in value) && isBytes(value)) {
    const audio = await new Response(value as ReadableStream<Uint8Array>).arrayBuffer();
    return { bytes: audio.byteLength, generation_id: generationId() };
  }
  const isIterable = typeof value === "object" && value !== null && Symbol.asyncIterator in value;
  if (!isIterable) return fromCamel(value) as Record<string, unknown>;
  const parts: unknown[] = [];
  for await (const part of value as AsyncIterable<{ result?: unknown }>) parts.push(fromCamel(part));
  if (!("result" in value)) return { events: parts };
  return { pages: parts.map((part) => (part as { result: unknown }).result) };
}

/** Streams of events are streams, too, but of a class of their own. */
function isBytes(value: object): boolean {
  return Object.getPrototypeOf(value) === ReadableStream.prototype;
}

function failureOf(thrown: unknown) {
  const { statusCode = 0, name, message } = thrown as Error & { statusCode?: number };
  const cause = (thrown as Error).cause;
  return { status: statusCode, name, message: `${message} ${cause instanceof Error ? cause.message : ""}` };
}

/** Objects whose members are no names of the package's. */
const opaque: ReadonlySet<string> = new Set(["config", "trace"]);

function toCamel(value: unknown): unknown {
  return renamed(value, camelName, (name, member) =>
    name === "expires_at" && typeof member === "string" ? new Date(member) : undefined,
  );
}

function fromCamel(value: unknown): unknown {
  return renamed(value, toSnake, (_name, member) =>
    member instanceof Date ? member.toISOString() : undefined,
  );
}

function renamed(
  value: unknown,
  rename: (name: string) => string,
  convert: (name: string, member: unknown) => unknown,
): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, rename, convert));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const made = convert(name, member) ?? (opaque.has(name) ? member : renamed(member, rename, convert));
      return [rename(name), made];
    }),
  );
}

function camelName(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function toSnake(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => `_${letters.toLowerCase()}`);
}
