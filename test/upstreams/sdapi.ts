/**
 * A stand-in for the server that AUTOMATIC1111's web UI is when it runs with --api, over real HTTP; stable-diffusion.cpp's
 * where it is told so. Checked against their sources (modules/api/api.py, modules/extra_networks.py,
 * examples/server/routes_sdapi.cpp); there is no client of this interface on npm that could prove it.
 *
 * - One job at a time, in a queue of its own; a client that leaves ends none, only an interrupt does, which is answered by
 *   what was drawn so far.
 * - Progress is that of whatever runs. Each look at it shows the next preview, every one of them twice.
 * - A prompt is read as they read it: what its tags load and override is in the log of jobs.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createImageSource } from "./image-source.ts";
import { type ReceivedRequest, type StandIn, type StandInAnswer, startStandIn } from "./stand-in-server.ts";

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
  const { auth, server = "webui", namesTasks = true, patienceMs = 400 } = options;
  const queued: SdapiBehaviour[] = [];
  const jobs: SdapiJobRecord[] = [];
  const images = createImageSource();
  let running: Running | undefined;
  let last: Promise<void> = Promise.resolve();

  const picture = async (record: SdapiJobRecord, shade: number) => {
    const { width = 512, height = 512 } = record.fields as { width?: number; height?: number };
    const spec = { format: "png", width, height, isTransparent: false, shade } as const;
    return (await images.image(spec)).toString("base64");
  };

  const draw = async (record: SdapiJobRecord, behaviour: SdapiBehaviour): Promise<readonly unknown[]> => {
    const ended = Promise.withResolvers<void>();
    const interrupt = () => {
      if (behaviour.isDeaf === true) return;
      record.state = "interrupted";
      ended.resolve();
    };
    const job: Running = { record, behaviour, looks: 0, interrupt };
    running = job;
    record.state = "running";
    const { previews = 0, until } = behaviour;
    const unlooked = (async () => {
      for (let looks = -1; looks < job.looks; await pause(previews > 0 ? patienceMs : 0)) looks = job.looks;
    })();
    const seen = (async () => {
      while (job.looks < 2 * previews && running === job) await pause(1);
    })();
    const drawn = Promise.all([Promise.race([seen, unlooked]), until]);
    await Promise.race([drawn, ended.promise]);
    running = undefined;
    if (record.state === "running") record.state = "done";
    const { seed = 0, batch_size: count = 1 } = record.fields as { seed?: number; batch_size?: number };
    const shades = Array.from({ length: count }, (_, index) => (Math.abs(seed) + index) % 256);
    return behaviour.images ?? (await Promise.all(shades.map((shade) => picture(record, shade))));
  };

  const generate = async (request: ReceivedRequest, answer: StandInAnswer) => {
    const fields = request.json as Record<string, unknown>;
    const behaviour = queued.shift() ?? behaviourOf(fields);
    if (behaviour.error !== undefined) return sendError(answer, behaviour.error);
    const refusal = refusalOf(fields, request.path.endsWith("img2img"), server);
    if (refusal !== undefined) return sendError(answer, refusal);
    const record = recordOf(fields, request.path.endsWith("img2img"), server);
    jobs.push(record);
    const before = last;
    const turn = Promise.withResolvers<void>();
    last = turn.promise;
    await before;
    const drawn = await draw(record, behaviour).finally(turn.resolve);
    const body = JSON.stringify({ images: drawn, parameters: fields, info: JSON.stringify({ seed: 1 }) });
    if (behaviour.cutAfterBytes === undefined) return answer.send(200, json, body);
    answer.start(200, { ...json, "content-length": String(body.length) });
    await answer.write(body.slice(0, behaviour.cutAfterBytes));
    await answer.cut();
  };

  const progress = async (_: ReceivedRequest, answer: StandInAnswer) => {
    const job = running;
    const { previews = 0 } = job?.behaviour ?? {};
    const shown = job === undefined ? 0 : Math.min(previews, Math.floor(job.looks++ / 2) + 1);
    const image = job === undefined || shown === 0 ? null : await picture(job.record, 255 - shown);
    const state = { skipped: false, interrupted: false, job: "scripts_txt2img", job_count: job ? 1 : 0 };
    const task = namesTasks ? { current_task: job?.record.fields.force_task_id ?? null } : {};
    const body = { progress: 0.5, eta_relative: 1, state, current_image: image, textinfo: null, ...task };
    answer.send(200, json, JSON.stringify(body));
  };

  const interrupt = (_: ReceivedRequest, answer: StandInAnswer) => {
    running?.interrupt();
    answer.send(200, json, "null");
  };

  const routes = new Map<string, (request: ReceivedRequest, answer: StandInAnswer) => unknown>([
    ["POST /sdapi/v1/txt2img", generate],
    ["POST /sdapi/v1/img2img", generate],
    ...(server === "webui"
      ? ([
          ["GET /sdapi/v1/progress", progress],
          ["POST /sdapi/v1/interrupt", interrupt],
        ] as const)
      : []),
  ]);
  const standIn = await startStandIn(async (request, answer) => {
    const route = routes.get(`${request.method} ${request.path}`);
    if (route === undefined) return answer.send(404, json, '{"detail":"Not Found"}');
    const wanted = auth === undefined ? undefined : `Basic ${Buffer.from(auth).toString("base64")}`;
    if (request.headers.authorization !== wanted) {
      const headers = { ...json, "www-authenticate": "Basic" };
      return answer.send(401, headers, '{"detail":"Incorrect username or password"}');
    }
    await route(request, answer);
  });
  return { ...standIn, jobs, next: (...behaviours) => void queued.push(...behaviours) };
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
