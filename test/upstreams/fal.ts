/**
 * A stand-in for fal: its queue (fal.ai/docs, "Asynchronous inference", "Inference API"), two of its apps, and the files that
 * they make, which anybody may fetch by their address. The queue takes whatever it is sent: what an app finds wrong with it
 * stands in the result. Addresses of a job have the app's first two names alone.
 */
import { createAudioSource, firstBytes } from "./stand-in/audio-source.ts";
import { createImageSource } from "./stand-in/image-source.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "./stand-in/stand-in-server.ts";

/** An answer as it stands. */
export interface PlainAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** The addresses that a submission is answered. */
interface Addresses {
  readonly status_url: string;
  readonly response_url: string;
  readonly cancel_url: string;
}

/** How one job goes. */
export interface JobBehaviour {
  /** The submission is answered with this. */
  readonly submission?: PlainAnswer;
  /** In place of its own; undefined: left out. */
  readonly addresses?: Partial<Record<keyof Addresses, string | undefined>>;
  /** What the questions are answered one after another, the last for good: states, or whole answers. */
  readonly states?: readonly (string | PlainAnswer)[];
  /** What the last state says besides. */
  readonly failure?: object;
  /** In place of the result. */
  readonly result?: PlainAnswer;
  /** Which images the checker finds unfit; the app's result has no such list where null. */
  readonly flags?: readonly boolean[] | null;
  /** In place of the first file, its address or its status. */
  readonly file?: Buffer;
  readonly fileUrl?: string;
  readonly expired?: number;
  /** Each waits before it is answered; questions count from 0. */
  readonly beforeSubmission?: () => Promise<void>;
  readonly beforeAnswer?: (index: number) => Promise<void> | undefined;
  readonly beforeFile?: () => Promise<void>;
  /** Breaks the connection of one of the answers after so many bytes. */
  readonly cut?: Partial<Record<"submission" | "question" | "result" | "file", number>>;
}

/** A running stand-in. */
export interface FalUpstream extends StandIn {
  /** Queues how the next jobs go. */
  next(...behaviours: JobBehaviour[]): void;
  /** Jobs that are neither completed nor cancelled. */
  openJobs(): number;
  /** How many were cancelled before they were completed. */
  cancelledJobs(): number;
}

type Input = Readonly<Record<string, unknown>>;

interface Job {
  readonly id: string;
  readonly app: string;
  readonly input: Input;
  readonly behaviour: JobBehaviour;
  state: "open" | "completed" | "cancelled";
  questions: number;
}

const apps = ["fal-ai/flux/schnell", "fal-ai/orpheus-tts"];
const voices = ["tara", "leah", "jess", "leo", "dan", "mia", "zac", "zoe"];

/** Starts it on the loopback. */
export async function startFalUpstream(apiKey = "key-id:key-secret"): Promise<FalUpstream> {
  const queue = new FalQueue();
  const standIn = await startStandIn(async (request, answer) => {
    const origin = `http://${request.headers.host}`;
    const [, file, place] = /^\/files\/([\w-]+)\/(\d+)\.\w+$/.exec(request.path) ?? [];
    if (file !== undefined) return await queue.deliver(file, Number(place), answer);
    if (request.headers.authorization !== `Key ${apiKey}`) {
      return sendJson(answer, {
        status: 401,
        body: { detail: "Cannot access application. Authentication is required." },
      });
    }
    return await queue.handle(request, answer, origin);
  });
  return Object.assign(standIn, {
    next: (...behaviours: JobBehaviour[]) => void queue.behaviours.push(...behaviours),
    openJobs: () => queue.count("open"),
    cancelledJobs: () => queue.count("cancelled"),
  });
}

class FalQueue {
  readonly behaviours: JobBehaviour[] = [];
  readonly #jobs = new Map<string, Job>();

  count(state: Job["state"]): number {
    return [...this.#jobs.values()].filter((job) => job.state === state).length;
  }

  handle(request: ReceivedRequest, answer: StandInAnswer, origin: string): Promise<void> {
    const { pathname } = new URL(request.path, origin);
    const [, app, id, part] =
      /^\/([\w-]+\/[\w-]+)\/requests\/([\w-]+)(\/status|\/cancel|)$/.exec(pathname) ?? [];
    if (app === undefined || id === undefined)
      return this.#submit(request, pathname.slice(1), answer, origin);
    const job = this.#jobs.get(id);
    if (job === undefined || !job.app.startsWith(app)) return sendJson(answer, notFound);
    if (part === "/cancel" && request.method === "PUT") return cancel(job, answer);
    if (request.method !== "GET")
      return sendJson(answer, { status: 405, body: { detail: "Method Not Allowed" } });
    return part === "/status" ? answerQuestion(job, answer, origin) : sendResult(job, answer, origin);
  }

  async #submit(request: ReceivedRequest, app: string, answer: StandInAnswer, origin: string): Promise<void> {
    if (request.method !== "POST" || !apps.includes(app)) {
      return sendJson(answer, { status: 404, body: { detail: `Application "${app}" not found` } });
    }
    const behaviour = this.behaviours.shift() ?? {};
    if (behaviour.submission !== undefined) return sendJson(answer, behaviour.submission);
    const id = crypto.randomUUID();
    const input = (request.json ?? {}) as Input;
    const job: Job = { id, app, input, behaviour, state: "open", questions: 0 };
    this.#jobs.set(id, job);
    await behaviour.beforeSubmission?.();
    const body = { status: "IN_QUEUE", queue_position: 0, ...addressesOf(job, origin) };
    return sendJson(answer, { status: 200, body }, behaviour.cut?.submission);
  }

  async deliver(id: string, place: number, answer: StandInAnswer): Promise<void> {
    const job = this.#jobs.get(id);
    const { expired, file, beforeFile, cut } = job?.behaviour ?? {};
    await beforeFile?.();
    if (job === undefined || expired !== undefined) {
      return sendJson(answer, { status: expired ?? 404, body: { detail: "Not Found" } });
    }
    const bytes = file ?? (await fileOf(job, place));
    return sendBytes(answer, 200, typeOf(job), bytes, cut?.file);
  }
}

const notFound: PlainAnswer = { status: 404, body: { status: "NOT_FOUND" } };

function addressesOf({ id, app, behaviour }: Job, origin: string): object {
  const url = `${origin}/${app.split("/").slice(0, 2).join("/")}/requests/${id}`;
  const own: Addresses = { status_url: `${url}/status`, response_url: url, cancel_url: `${url}/cancel` };
  return { request_id: id, ...own, ...behaviour.addresses };
}

function cancel(job: Job, answer: StandInAnswer): Promise<void> {
  if (job.state === "completed")
    return sendJson(answer, { status: 400, body: { status: "ALREADY_COMPLETED" } });
  job.state = "cancelled";
  return sendJson(answer, { status: 202, body: { status: "CANCELLATION_REQUESTED" } });
}

async function answerQuestion(job: Job, answer: StandInAnswer, origin: string): Promise<void> {
  const { states = ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"], failure, beforeAnswer, cut } = job.behaviour;
  const index = job.questions++;
  const gate = beforeAnswer?.(index);
  if (gate !== undefined) await Promise.race([gate, answer.closed]);
  if (answer.isClosed) return;
  const state = states[Math.min(index, states.length - 1)] ?? "COMPLETED";
  if (typeof state !== "string") return sendJson(answer, state);
  const isOver = !state.startsWith("IN_");
  if (isOver && job.state === "open") job.state = "completed";
  const body = {
    status: state,
    ...addressesOf(job, origin),
    ...(state === "IN_QUEUE" ? { queue_position: 0 } : { logs: null }),
    ...(isOver && { metrics: { inference_time: 0.5 }, ...failure }),
  };
  const cutAfterBytes = index === 0 ? cut?.question : undefined;
  return sendJson(answer, { status: isOver ? 200 : 202, body }, cutAfterBytes);
}

function sendResult(job: Job, answer: StandInAnswer, origin: string): Promise<void> {
  const { result, cut } = job.behaviour;
  if (result !== undefined) return sendJson(answer, result);
  if (job.state !== "completed") {
    return sendJson(answer, { status: 400, body: { detail: "Request is still in progress" } });
  }
  const faults = job.app === apps[0] ? imageFaults(job.input) : speechFaults(job.input);
  if (faults.length > 0) return sendJson(answer, { status: 422, body: { detail: faults } });
  return sendJson(answer, { status: 200, body: outputOf(job, origin) }, cut?.result);
}

function outputOf({ id, app, input, behaviour }: Job, origin: string): object {
  const urlOf = (place: number) =>
    (place === 0 ? behaviour.fileUrl : undefined) ?? `${origin}/files/${id}/${place}.bin`;
  if (app !== apps[0]) return { audio: { url: urlOf(0), content_type: "audio/wav", file_name: "x.wav" } };
  const places = [...Array(Number(input.num_images ?? 1)).keys()];
  const { flags = places.map(() => false) } = behaviour;
  return {
    images: places.map((place) => ({ url: urlOf(place), ...sizeOf(input), content_type: "image/jpeg" })),
    timings: { inference: 0.2 },
    seed: input.seed ?? 42,
    ...(flags !== null && { has_nsfw_concepts: flags }),
    prompt: input.prompt,
  };
}

const source = createImageSource();
const pcm = createAudioSource("pcm");
const audioBytes = 24_000;

function fileOf({ app, input }: Job, place: number): Promise<Buffer> {
  if (app !== apps[0]) return Promise.resolve(wavOf(falAudio()));
  const format = input.output_format === "png" ? "png" : "jpeg";
  return source.image({ format, ...sizeOf(input), isTransparent: false, shade: 40 + place });
}

function typeOf({ app, input }: Job): Record<string, string> {
  const image = `image/${input.output_format === "png" ? "png" : "jpeg"}`;
  return { "content-type": app === apps[0] ? image : "audio/wav" };
}

/** The image of a place in a job's result that a client gets. */
export function falImage(place: number, size: { readonly width: number; readonly height: number }) {
  return source.image({ format: "jpeg", ...size, isTransparent: false, shade: 40 + place });
}

/** The samples that a client gets. */
export function falAudio(): Buffer {
  return firstBytes(pcm, audioBytes);
}

/** Samples of 24 kHz mono as a file. */
export function wavOf(samples: Buffer): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF\0\0\0\0WAVEfmt ", 0, "latin1");
  head.writeUInt32LE(36 + samples.length, 4);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(24_000, 24);
  head.writeUInt32LE(48_000, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

function sizeOf({ image_size: size }: Input): { readonly width: number; readonly height: number } {
  const { width = 1024, height = 768 } = (size ?? {}) as { width?: number; height?: number };
  return { width, height };
}

function fault(field: string, msg: string, type: string, input: unknown): object {
  return { loc: ["body", field], msg, type, url: `https://docs.fal.ai/errors/#${type}`, input };
}

function imageFaults(input: Input): readonly object[] {
  const { prompt, num_images: count = 1, output_format: format = "jpeg", seed } = input;
  const { width, height } = sizeOf(input);
  const faults: object[] = [];
  if (typeof prompt !== "string") faults.push(fault("prompt", "Field required", "missing", input));
  if (!Number.isInteger(count) || Number(count) < 1 || Number(count) > 4) {
    faults.push(fault("num_images", "Input should be at most 4", "less_than_equal", count));
  }
  if (![width, height].every((side) => Number.isInteger(side) && side >= 8 && side <= 14_142)) {
    faults.push(fault("image_size", "Input should be a valid size", "value_error", input.image_size));
  }
  if (format !== "jpeg" && format !== "png") {
    faults.push(fault("output_format", "Input should be 'jpeg' or 'png'", "literal_error", format));
  }
  if (seed !== undefined && !Number.isInteger(seed))
    faults.push(fault("seed", "Not an integer", "int_type", seed));
  return faults;
}

function speechFaults(input: Input): readonly object[] {
  const { text, voice = "tara" } = input;
  const faults: object[] = [];
  if (typeof text !== "string" || text === "") faults.push(fault("text", "Field required", "missing", input));
  if (!voices.includes(String(voice)))
    faults.push(fault("voice", "Input should be 'tara' …", "literal_error", voice));
  return faults;
}

function sendJson(
  answer: StandInAnswer,
  { status, body }: PlainAnswer,
  cutAfterBytes?: number,
): Promise<void> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return sendBytes(answer, status, { "content-type": "application/json" }, Buffer.from(text), cutAfterBytes);
}

async function sendBytes(
  answer: StandInAnswer,
  status: number,
  headers: Record<string, string>,
  body: Buffer,
  cutAfterBytes?: number,
): Promise<void> {
  const id = { "x-fal-request-id": "5f0e1d2c" };
  answer.start(status, { ...headers, ...id, "content-length": String(body.length) });
  if (cutAfterBytes === undefined) return answer.end(body);
  if (cutAfterBytes > 0) await answer.write(body.subarray(0, cutAfterBytes));
  await answer.cut();
}
