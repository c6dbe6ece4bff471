import { readFileSync } from "node:fs";
import { EventSourceParserStream } from "eventsource-parser/stream";
import sharp from "sharp";
import {
  type OpenAiUpstream,
  type OpenAiUpstreamOptions,
  startOpenAiUpstream,
} from "../../upstreams/openai/openai.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../kafka/kafka-broker.ts";
import { startFlowStack } from "./speech-flow.ts";
import { openAiEnv, startTestStandalone } from "./standalone.ts";

/** The two ways in which the whole product runs. */
export const imageWays = ["in one process", "as processes"] as const;
/** One of them. */
export type ImageWay = (typeof imageWays)[number];

/** The whole product with a stand-in upstream in the test's own process. */
export interface ImageFlow extends AsyncDisposable {
  /** Base URL of the REST interface, which ends in `/api/v1`. */
  readonly restUrl: string;
  readonly inferenceKey: string;
  readonly managementKey: string;
  readonly upstream: OpenAiUpstream;
  /** Process ids of what an image passes through, by name. */
  readonly pids: Readonly<Record<string, number>>;
}

/** What a flow changes about the product. */
export interface ImageFlowOptions {
  readonly env?: Record<string, string>;
  readonly upstream?: OpenAiUpstreamOptions;
  /** Gives processes a Kafka of their own where one can run, so that usage reaches its records. */
  readonly withKafka?: boolean;
}

/** Starts it on a database of its own. */
export async function startImageFlow(way: ImageWay, options: ImageFlowOptions = {}): Promise<ImageFlow> {
  await using stack = new AsyncDisposableStack();
  const upstream = await startOpenAiUpstream(options.upstream);
  stack.defer(() => upstream.close());
  const env = { ...openAiEnv(upstream), ...options.env };
  const running = await (way === "in one process" ? startOne(env) : startMany(env, options, stack));
  stack.defer(running.stop);
  const kept = stack.move();
  const { stop: _, ...shown } = running;
  return { ...shown, upstream, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** The product in both ways. */
export interface ImageFlows extends AsyncDisposable {
  in(way: ImageWay): ImageFlow;
}

/** Starts both side by side; when one does not start, neither runs on. */
export async function startImageFlows(options: ImageFlowOptions = {}): Promise<ImageFlows> {
  const stack = new AsyncDisposableStack();
  const starts = imageWays.map(async (way) => [way, stack.use(await startImageFlow(way, options))] as const);
  try {
    const flows = new Map((await Promise.allSettled(starts)).map(resultOf));
    return {
      in: (way) => flows.get(way) as ImageFlow,
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (thrown) {
    await stack.disposeAsync();
    throw thrown;
  }
}

function resultOf<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

type Running = Omit<ImageFlow, "upstream" | keyof AsyncDisposable> & { stop(): PromiseLike<void> };

async function startOne(env: Record<string, string>): Promise<Running> {
  const { baseUrl, child, inferenceKey, managementKey, close } = await startTestStandalone(env);
  return {
    restUrl: `${baseUrl}/api/v1`,
    inferenceKey,
    managementKey,
    pids: { standalone: child.pid },
    stop: close,
  };
}

async function startMany(
  env: Record<string, string>,
  { withKafka = false }: ImageFlowOptions,
  stack: AsyncDisposableStack,
): Promise<Running> {
  const kafka = withKafka && kafkaUnavailable() === undefined ? await startKafka(stack) : {};
  const flow = await startFlowStack({ env, ...kafka });
  const { restUrl, inferenceKey, managementKey, processes } = flow.stack;
  return {
    restUrl,
    inferenceKey,
    managementKey,
    pids: { gateway: processes.child("gateway").pid, image: processes.child("image").pid },
    stop: () => flow[Symbol.asyncDispose](),
  };
}

/** A broker of its own: all that runs on one shares its consumer groups. */
async function startKafka(stack: AsyncDisposableStack): Promise<{ kafkaBrokers: string }> {
  const broker: KafkaBroker = await startKafkaBroker();
  stack.defer(() => broker.stop());
  return { kafkaBrokers: broker.brokers.join(",") };
}

/** What an image request may bring besides its body. */
export interface DrawOptions {
  readonly key?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A small picture of the built-in model. */
export const leastPicture = { model: "local/painter", prompt: "A fox in the snow.", resolution: "512" };

/** The stand-in's model. */
export const upstreamPicture = { model: "openai/gpt-image-2.5-flare", prompt: "A fox." };

/** POST /images; a string goes out as it is. */
export function draw(
  { restUrl, inferenceKey }: Pick<ImageFlow, "restUrl" | "inferenceKey">,
  body: unknown,
  { key = inferenceKey, signal, headers }: DrawOptions = {},
): Promise<Response> {
  return fetch(`${restUrl}/images`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** What an answer says that it cost. */
export interface AnswerUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly cost: number;
  readonly is_byok: boolean;
}

/** An answer as JSON, its images as bytes. */
export interface DrawnAnswer {
  readonly created: number;
  readonly images: readonly { readonly mediaType: string; readonly bytes: Buffer }[];
  readonly usage: AnswerUsage;
}

/** Reads an answer that must be good. */
export async function imagesOf(response: Response): Promise<DrawnAnswer> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${text}`);
  const { created, data, usage } = JSON.parse(text) as {
    created: number;
    data: { media_type: string; b64_json: string }[];
    usage: AnswerUsage;
  };
  const images = data.map((item) => ({
    mediaType: item.media_type,
    bytes: Buffer.from(item.b64_json, "base64"),
  }));
  return { created, images, usage };
}

/** The only image of an answer that must be good. */
export async function imageOf(response: Response): Promise<Buffer> {
  const { images } = await imagesOf(response);
  const [image] = images;
  if (image === undefined || images.length > 1) throw new Error(`${images.length} images in place of one`);
  return image.bytes;
}

/** An event of a stream; `[DONE]` is `{type: "[DONE]"}`. */
export interface ImageEvent {
  readonly type: string;
  readonly b64_json?: string;
  readonly partial_image_index?: number;
  readonly media_type?: string;
  readonly created?: number;
  readonly usage?: AnswerUsage;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The events of an answer, read by a parser that is not ours, each when it is asked for. */
export async function* eventsOf(response: Response): AsyncGenerator<ImageEvent, void, undefined> {
  const type = response.headers.get("content-type");
  if (response.status !== 200 || type !== "text/event-stream" || response.body === null) {
    throw new Error(`answered ${response.status} with ${type}: ${await response.text()}`);
  }
  const events = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ onError: "terminate" }));
  for await (const { data } of events) {
    yield data === "[DONE]" ? { type: data } : (JSON.parse(data) as ImageEvent);
  }
}

/** GET of a path of the interface, with the management key, as JSON; throws where it is not answered well. */
export async function read<T>(
  { restUrl, managementKey }: Pick<ImageFlow, "restUrl" | "managementKey">,
  path: string,
): Promise<T> {
  const response = await fetch(restUrl + path, { headers: { authorization: `Bearer ${managementKey}` } });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { data: T }).data;
}

/** A new inference key of the first account and its hash, by which its usage is told apart. */
export async function createKey({
  restUrl,
  managementKey,
}: ImageFlow): Promise<{ key: string; hash: string }> {
  const response = await fetch(`${restUrl}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${managementKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "A test's own" }),
  });
  if (response.status !== 201) throw new Error(`a key was answered ${response.status}`);
  const { key, data } = (await response.json()) as { key: string; data: { hash: string } };
  return { key, hash: data.hash };
}

/** All of an image, decoded: throws where any of it is damaged. Eight bits a channel. */
export async function decode(bytes: Uint8Array) {
  const { data, info } = await sharp(bytes, { failOn: "warning" })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return { data, width, height, channels };
}

/** A one-coloured png. */
export function flatPng(background: string): Promise<Buffer> {
  return sharp({ create: { width: 32, height: 32, channels: 3, background } })
    .png()
    .toBuffer();
}

/** Seconds of CPU that a process has used since its start (proc_pid_stat(5): utime and stime, in 1/100 s). */
export function cpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Memory of a process as /proc tells it, MiB: now, or the most since its start. */
export function memoryMib(pid: number, which: "VmRSS" | "VmHWM"): number {
  const found = new RegExp(`^${which}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (found === null) throw new Error(`process ${pid} has no ${which}`);
  return Number(found[1]) / 1024;
}
