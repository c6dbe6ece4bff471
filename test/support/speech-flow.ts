import { type OpenAiUpstream, type OpenAiUpstreamOptions, startOpenAiUpstream } from "../upstreams/openai.ts";
import { createTestDatabase } from "./database.ts";
import { type ProcessStack, type ProcessStackOptions, startProcessStack } from "./process-stack.ts";

/** A whole stack of processes on a database of its own. */
export interface FlowStack extends AsyncDisposable {
  readonly stack: ProcessStack;
}

/** A stack whose speech comes from a stand-in upstream in the test's own process. */
export interface SpeechFlow extends FlowStack {
  readonly upstream: OpenAiUpstream;
}

/** What a flow changes about its stack. */
export type FlowOptions = Omit<ProcessStackOptions, "databaseUrl">;

/** Ends a stack in which a test that failed left something running. */
const drainTimeoutMs = "15000";

/** Starts a stack on a fresh database. */
export async function startFlowStack(options: FlowOptions): Promise<FlowStack> {
  const database = await createTestDatabase();
  const env = { DRAIN_TIMEOUT_MS: drainTimeoutMs, ...options.env };
  try {
    const stack = await startProcessStack({ ...options, databaseUrl: database.url, env });
    return {
      stack,
      async [Symbol.asyncDispose]() {
        await stack.stop();
        await database.drop();
      },
    };
  } catch (thrown) {
    await database.drop();
    throw thrown;
  }
}

/** Starts a stand-in upstream and a stack that has it as its provider. */
export async function startSpeechFlow(
  options: FlowOptions & { upstream?: OpenAiUpstreamOptions } = {},
): Promise<SpeechFlow> {
  const upstream = await startOpenAiUpstream(options.upstream);
  const apiKey = options.upstream?.apiKey ?? "test-key";
  const speechEnv = { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: upstream.baseUrl, ...options.speechEnv };
  try {
    const { env } = options;
    const flow = await startFlowStack({ speechEnv, ...(env === undefined ? {} : { env }) });
    return {
      stack: flow.stack,
      upstream,
      async [Symbol.asyncDispose]() {
        await upstream.close();
        await flow[Symbol.asyncDispose]();
      },
    };
  } catch (thrown) {
    await upstream.close();
    throw thrown;
  }
}

/** A model of the stand-in. */
export const flowModel = "openai/tts-1";

/** What a request changes: its key, its signal, fields of its body. */
export interface SpeakOptions {
  readonly key?: string;
  readonly signal?: AbortSignal;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Asks the REST interface of a stack to speak, as pcm. */
export function speak(
  { restUrl, inferenceKey }: Pick<ProcessStack, "restUrl" | "inferenceKey">,
  input: string,
  { key = inferenceKey, signal, fields, headers }: SpeakOptions = {},
): Promise<Response> {
  return fetch(`${restUrl}/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: flowModel, voice: "alloy", response_format: "pcm", input, ...fields }),
    ...(signal === undefined ? {} : { signal }),
  });
}
