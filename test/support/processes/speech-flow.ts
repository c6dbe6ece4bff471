import { ConnectError, type Transport } from "@connectrpc/connect";
import { AudioFormat } from "../../../gen/media/speech/v1/speech_pb.ts";
import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { createRpcClient } from "../../../lib/rpc/client.ts";
import {
  type OpenAiUpstream,
  type OpenAiUpstreamOptions,
  startOpenAiUpstream,
} from "../../upstreams/openai/openai.ts";
import { createTestDatabase } from "../postgres/database.ts";
import { audioLength, stockTransport } from "../services/speech-server.ts";
import { type ProcessStack, type ProcessStackOptions, startProcessStack } from "./process-stack.ts";

/** A whole stack of processes on a database of its own. */
export interface FlowStack extends AsyncDisposable {
  readonly stack: ProcessStack;
  /** What the account service reaches its database by; holds a password. */
  readonly databaseUrl: string;
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
      databaseUrl: database.url,
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
  const env = { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: upstream.baseUrl, ...options.env };
  try {
    const flow = await startFlowStack({ env });
    return {
      ...flow,
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

/** What a direct call of the speech service came to. */
export interface DirectAnswer {
  readonly audioBytes: number;
  /** Whether the stream had its first and its last frame. */
  readonly whole: boolean;
  /** Headers and trailers that the caller got. */
  readonly metadata: readonly (readonly [string, string])[];
}

/** How a direct call is made. */
export interface DirectOptions {
  /** Connect over HTTP/1.1 unless given. */
  readonly transport?: Transport;
  readonly model?: string;
  readonly signal?: AbortSignal;
  /** Called with each piece of audio; the next is read when it has resolved. */
  readonly onAudio?: () => Promise<void> | void;
}

/** Calls the speech service itself, as pcm. Rejects with DomainError. */
export async function speakDirectly(
  { urls }: Pick<ProcessStack, "urls">,
  input: string,
  authorization: string | undefined,
  options: DirectOptions = {},
): Promise<DirectAnswer> {
  const transport = options.transport ?? stockTransport("Connect over HTTP/1.1", urls.speech);
  const metadata: [string, string][] = [];
  const keep = (headers: Headers) => void metadata.push(...headers);
  const frames: string[] = [];
  let audioBytes = 0;
  const answer = createRpcClient(SpeechService, transport).synthesize(
    { input, model: options.model ?? flowModel, voice: "alloy", responseFormat: AudioFormat.PCM },
    {
      ...(authorization === undefined ? {} : { headers: { authorization } }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
      onHeader: keep,
      onTrailer: keep,
    },
  );
  for await (const response of answer) {
    frames.push(response.frame.case ?? "");
    const length = audioLength(response);
    audioBytes += length;
    if (length > 0) await options.onAudio?.();
  }
  return { audioBytes, whole: frames[0] === "started" && frames.at(-1) === "finished", metadata };
}

/** Any JWT: two JSON objects in base64url and a signature. */
export const tokenPattern = /eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*/;

/** All that a failed call tells its caller, metadata included, as a value that JSON can write. */
export function describeError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown;
  const metadata = thrown instanceof ConnectError ? [...thrown.metadata] : [];
  return [thrown.message, thrown, metadata, describeError(thrown.cause)];
}
