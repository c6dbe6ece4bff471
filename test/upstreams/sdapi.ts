/**
 * A stand-in for the server that AUTOMATIC1111's web UI is when it runs with --api, over real HTTP; stable-diffusion.cpp's
 * where it is told so. Checked against their sources (modules/api/api.py, modules/extra_networks.py,
 * examples/server/routes_sdapi.cpp); test/system/python-webui.test.ts proves it by webuiapi, a client that others wrote.
 *
 * - One job at a time, in a queue of its own; a client that leaves ends none, only an interrupt does, which is answered by
 *   what was drawn so far.
 * - Progress is that of whatever runs. Each look at it shows the next preview, every one of them twice.
 * - A prompt is read as they read it: what its tags load and override is in the log of jobs.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createImageSource } from "./stand-in/image-source.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "./stand-in/stand-in-server.ts";

/** How the next job goes. */
export interface SdapiBehaviour {
  /** Ends once so many previews have been seen, or nobody has looked for a while; at once unless given. */
  readonly previews?: number;
  /** Ends when this resolves, besides. */
  readonly until?: Promise<void>;
  /** Answered in place of drawing. */
  readonly error?: {
    readonly status: number;
    readonly body: string;
    readonly headers?: Record<string, string>;
  };
  /** The body breaks off after so many bytes. */
  readonly cutAfterBytes?: number;
  /** In place of the images. */
  readonly images?: readonly unknown[];
  /** Goes on drawing whoever interrupts it. */
  readonly isDeaf?: boolean;
}

/** One job as it was understood. */
export interface SdapiJobRecord {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly isFromImage: boolean;
  /** Files that tags of the prompt loaded. */
  readonly networks: readonly string[];
  /** What the prompt set besides. */
  readonly extraArguments: string | undefined;
  /** Parts that are drawn for themselves. */
  readonly parts: number;
  state: "waiting" | "running" | "done" | "interrupted";
}

/** Options of startSdapiUpstream. */
export interface SdapiUpstreamOptions {
  /** `user:password`; without it everybody is let in. */
  readonly auth?: string;
  /** stable-diffusion.cpp has neither progress nor interrupt. */
  readonly server?: "webui" | "sd.cpp";
  /** How long a job with previews waits for somebody to look; 400 ms unless given. */
  readonly patienceMs?: number;
  /** Whether progress names the task, as newer servers do. */
  readonly namesTasks?: boolean;
}

/** A running stand-in. */
export interface SdapiUpstream extends StandIn {
  readonly jobs: readonly SdapiJobRecord[];
  next(...behaviours: SdapiBehaviour[]): void;
}

interface Running {
  readonly record: SdapiJobRecord;
  readonly behaviour: SdapiBehaviour;
  looks: number;
  interrupt(): void;
}

const checkpoints = ["sd_xl_base_1.0", "v1-5-pruned"];

/** Starts it on the loopback. A job's behaviour: queued, else what `[[previews=N]]` in its prompt says. */
export async function startSdapiUpstream(options: SdapiUpstreamOptions = {}): Promise<SdapiUpstream> {
  const server = new SdapiServer(options);
  const standIn = await startStandIn((request, answer) => server.handle(request, answer));
  return { ...standIn, jobs: server.jobs, next: (...behaviours) => void server.queued.push(...behaviours) };
}

class SdapiServer {
  readonly jobs: SdapiJobRecord[] = [];
  readonly queued: SdapiBehaviour[] = [];
  readonly #options: SdapiUpstreamOptions;
  readonly #images = createImageSource();
  #running: Running | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(options: SdapiUpstreamOptions) {
    this.#options = options;
  }

  async handle(request: ReceivedRequest, answer: StandInAnswer): Promise<void> {
    const { auth, server } = this.#options;
    const path = `${request.method} ${request.path}`;
    const isDrawing = /^POST \/sdapi\/v1\/(txt2img|img2img)$/.test(path);
    const isAsking =
      server !== "sd.cpp" && /^(GET \/sdapi\/v1\/progress|POST \/sdapi\/v1\/interrupt)$/.test(path);
    if (!isDrawing && !isAsking) return answer.send(404, json, '{"detail":"Not Found"}');
    const wanted = auth === undefined ? undefined : `Basic ${Buffer.from(auth).toString("base64")}`;
    if (request.headers.authorization !== wanted) {
      const headers = { ...json, "www-authenticate": "Basic" };
      return answer.send(401, headers, '{"detail":"Incorrect username or password"}');
    }
    if (isDrawing) return await this.#generate(request, answer);
    if (request.method === "GET") return answer.send(200, json, JSON.stringify(await this.#progress()));
    this.#running?.interrupt();
    answer.send(200, json, "null");
  }

  async #generate(request: ReceivedRequest, answer: StandInAnswer): Promise<void> {
    const { server = "webui" } = this.#options;
    const fields = request.json as Record<string, unknown>;
    const isFromImage = request.path.endsWith("img2img");
    const behaviour = this.queued.shift() ?? behaviourOf(fields);
    const refusal = behaviour.error ?? refusalOf(fields, isFromImage, server);
    if (refusal !== undefined) return sendError(answer, refusal);
    const record = recordOf(fields, isFromImage, server);
    this.jobs.push(record);
    const before = this.#last;
    const turn = Promise.withResolvers<void>();
    this.#last = turn.promise;
    await before;
    await this.#run(record, behaviour).finally(turn.resolve);
    const images = behaviour.images ?? (await this.#picturesOf(record));
    const body = JSON.stringify({ images, parameters: fields, info: JSON.stringify({ seed: 1 }) });
    if (behaviour.cutAfterBytes === undefined) return answer.send(200, json, body);
    answer.start(200, { ...json, "content-length": String(body.length) });
    await answer.write(body.slice(0, behaviour.cutAfterBytes));
    await answer.cut();
  }

  async #run(record: SdapiJobRecord, behaviour: SdapiBehaviour): Promise<void> {
    const { previews = 0, until, isDeaf } = behaviour;
    const interrupted = Promise.withResolvers<void>();
    const interrupt = () => {
      if (isDeaf === true) return;
      record.state = "interrupted";
      interrupted.resolve();
    };
    const job: Running = { record, behaviour, looks: 0, interrupt };
    this.#running = job;
    record.state = "running";
    const patienceMs = previews > 0 ? (this.#options.patienceMs ?? 400) : 0;
    const unlooked = (async () => {
      for (let looks = -1; looks < job.looks; await pause(patienceMs)) looks = job.looks;
    })();
    const seen = (async () => {
      while (job.looks < 2 * previews && this.#running === job) await pause(1);
    })();
    await Promise.race([Promise.all([Promise.race([seen, unlooked]), until]), interrupted.promise]);
    this.#running = undefined;
    if (record.state === "running") record.state = "done";
  }

  async #progress(): Promise<object> {
    const job = this.#running;
    const { previews = 0 } = job?.behaviour ?? {};
    const shown = job === undefined ? 0 : Math.min(previews, Math.floor(job.looks++ / 2) + 1);
    const image = job === undefined || shown === 0 ? null : await this.#picture(job.record, 255 - shown);
    const state = { skipped: false, interrupted: false, job: "scripts_txt2img", job_count: job ? 1 : 0 };
    const { namesTasks = true } = this.#options;
    const task = namesTasks ? { current_task: job?.record.fields.force_task_id ?? null } : {};
    return { progress: 0.5, eta_relative: 1, state, current_image: image, textinfo: null, ...task };
  }

  async #picturesOf(record: SdapiJobRecord): Promise<readonly string[]> {
    const { seed = 0, batch_size: count = 1 } = record.fields as { seed?: number; batch_size?: number };
    const shades = Array.from({ length: count }, (_, index) => (Math.abs(seed) + index) % 256);
    return await Promise.all(shades.map((shade) => this.#picture(record, shade)));
  }

  async #picture({ fields }: SdapiJobRecord, shade: number): Promise<string> {
    const { width = 512, height = 512 } = fields as { width?: number; height?: number };
    const spec = { format: "png", width, height, isTransparent: false, shade } as const;
    return (await this.#images.image(spec)).toString("base64");
  }
}

const json = { "content-type": "application/json" };

function behaviourOf({ prompt }: Readonly<Record<string, unknown>>): SdapiBehaviour {
  const previews = /\[\[previews=(\d+)\]\]/.exec(String(prompt))?.[1];
  return previews === undefined ? {} : { previews: Number(previews) };
}

function sendError(answer: StandInAnswer, { status, body, headers }: NonNullable<SdapiBehaviour["error"]>) {
  answer.send(status, { ...json, ...headers }, body);
}

function refusalOf(fields: Readonly<Record<string, unknown>>, isFromImage: boolean, server: string) {
  if (server === "sd.cpp") return undefined;
  for (const name of ["width", "height", "batch_size", "n_iter", "seed"]) {
    if (fields[name] === undefined || Number.isInteger(fields[name])) continue;
    const detail = [{ loc: ["body", name], msg: "value is not a valid integer", type: "type_error.integer" }];
    return { status: 422, body: JSON.stringify({ detail }) };
  }
  const { sd_model_checkpoint: checkpoint } = (fields.override_settings ?? {}) as Record<string, string>;
  if (checkpoint !== undefined && !checkpoints.includes(checkpoint)) return missing("Model not found");
  if (isFromImage && !Array.isArray(fields.init_images)) return missing("Init image not found");
  return undefined;
}

function missing(detail: string) {
  return { status: 404, body: JSON.stringify({ error: "HTTPException", detail, body: "", errors: "" }) };
}

function recordOf(
  fields: Readonly<Record<string, unknown>>,
  isFromImage: boolean,
  server: string,
): SdapiJobRecord {
  const prompt = String(fields.prompt);
  const isCpp = server === "sd.cpp";
  return {
    fields,
    isFromImage,
    networks: isCpp
      ? []
      : [...prompt.matchAll(/<(\w+):([^>]+)>/g)].map(([, name, rest]) => `${name}:${rest}`),
    extraArguments: isCpp ? /<sd_cpp_extra_args>(.*?)<\/sd_cpp_extra_args>/.exec(prompt)?.[1] : undefined,
    parts: isCpp ? 1 : prompt.split(/\bAND\b/).length,
    state: "waiting",
  };
}
