import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey } from "../../../lib/identity/api-key.ts";
import type { OpenAiUpstream } from "../../upstreams/openai/openai.ts";
import { createTestDatabase } from "../postgres/database.ts";
import { postSpeech } from "../services/gateway-server.ts";
import { type Child, startChild } from "./child.ts";

/** Both keys of the first account. */
export interface StandaloneKeys {
  readonly inferenceKey: string;
  readonly managementKey: string;
}

/** `npm start` as a process of its own, on ports of the system's choice. */
export interface Standalone {
  readonly child: Child;
  /** Base URL of the REST interface without its path. */
  readonly baseUrl: string;
  readonly restPort: number;
  /** Base URL of the RPC port. */
  readonly rpcUrl: string;
  readonly rpcPort: number;
  /** The keys that the terminal showed; undefined on every start but the first. */
  readonly keys: StandaloneKeys | undefined;
}

/** The environment of a start on `dataDir` that takes no fixed port. */
export function standaloneEnv(dataDir: string, env: Record<string, string> = {}): Record<string, string> {
  return { PORT: "0", RPC_PORT: "0", METRICS_PORT: "off", DATA_DIR: dataDir, ...env };
}

/** The variables that put a stand-in in OpenAI's place. */
export function openAiEnv({ baseUrl }: Pick<OpenAiUpstream, "baseUrl">): Record<string, string> {
  return { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: baseUrl };
}

/** Starts it, by `start` if given, and waits until it serves. Rejects with its last lines when it does not start. */
export async function startStandalone(
  dataDir: string,
  env: Record<string, string> = {},
  start = startChild,
): Promise<Standalone> {
  const child = start("standalone/main.ts", { env: standaloneEnv(dataDir, env) });
  const [rpcPort, restPort] = [await child.listeningPort("rpc"), await child.listeningPort("rest")];
  // The last line of the text for people: all of it has been read by then.
  await child.line((line) => line.startsWith("Keys are shown") || line.startsWith("Play hello.mp3"));
  return {
    child,
    baseUrl: `http://127.0.0.1:${restPort}`,
    restPort,
    rpcUrl: `http://127.0.0.1:${rpcPort}`,
    rpcPort,
    keys: shownKeys(child.lines),
  };
}

function shownKeys(lines: readonly string[]): StandaloneKeys | undefined {
  const key = (kind: string) => {
    const pattern = new RegExp(`^ +${kind} +(sk-[\\w-]+)$`);
    return lines.map((line) => pattern.exec(line)?.[1]).find((found) => found !== undefined);
  };
  const [inferenceKey, managementKey] = [key("inference"), key("management")];
  if (inferenceKey === undefined || managementKey === undefined) return undefined;
  return { inferenceKey, managementKey };
}

/** A standalone whose keys are known, for tests that need only one. */
export interface TestStandalone extends Standalone, StandaloneKeys {
  /** Its DATA_DIR. */
  readonly dataDir: string;
  /** Stops it and removes all it left; checks that it ended well. */
  close(): Promise<void>;
}

/** Starts one on a fresh database of the test run's PostgreSQL, which takes less time than one of its own. */
export async function startTestStandalone(env: Record<string, string> = {}): Promise<TestStandalone> {
  const dataDir = await mkdtemp(join(tmpdir(), "standalone-"));
  const database = await createTestDatabase();
  const [inferenceKey, managementKey] = [generateApiKey(), generateApiKey()];
  const remove = async () => {
    await database.drop();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const standalone = await startStandalone(dataDir, {
      DATABASE_URL: database.url,
      BOOTSTRAP_INFERENCE_KEY: inferenceKey,
      BOOTSTRAP_MANAGEMENT_KEY: managementKey,
      ...env,
    });
    const close = async () => {
      const ended = await standalone.child.stop();
      await remove();
      if (ended !== 0) throw new Error(`standalone ended with ${ended}`);
    };
    return { ...standalone, inferenceKey, managementKey, dataDir, close };
  } catch (thrown) {
    await remove();
    throw thrown;
  }
}

/** What a speech request may bring besides its body. */
export interface SpeakOptions {
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** POST /api/v1/audio/speech with this key; a string goes out as it is. */
export function speak(
  { baseUrl }: Pick<Standalone, "baseUrl">,
  key: string,
  body: unknown,
  { headers = {}, ...rest }: SpeakOptions = {},
): Promise<Response> {
  return postSpeech({ baseUrl }, body, { headers: { authorization: `Bearer ${key}`, ...headers }, ...rest });
}

/** The whole body of an answer. */
export async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer());
}
