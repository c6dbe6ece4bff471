/**
 * A stand-in for Black Forest Labs' API: tasks, the address to ask after each, and what they made, for as long as the test
 * says. Its errors are those of docs.bfl.ai and of FastAPI, which the vendor runs.
 */
import { createImageSource } from "./stand-in/image-source.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  type StandInOptions,
  startStandIn,
} from "./stand-in/stand-in-server.ts";

/** How one task goes. */
export interface TaskBehaviour {
  /** What the questions are answered one after another, the last for good: states, or whole answers. */
  states?: readonly (string | PlainAnswer)[];
  /** The submission is answered with this. */
  submission?: PlainAnswer;
  /** Credits as the submission states them; null: not at all. Reckoned by the vendor's list by default. */
  cost?: number | null;
  /** Credits as the answer that is ready states them; left out by default. */
  finalCost?: number;
  /** In place of its own: what the submission says where to ask, and the answer that is ready where the image is. */
  pollingUrl?: string;
  sampleUrl?: string;
  /** The image's address has run out. */
  expired?: 404 | 410;
  /** In place of the image. */
  sample?: Buffer;
  /** Each question waits for it before it is answered; questions count from 0. */
  beforeAnswer?: (index: number) => Promise<void> | undefined;
  /** Breaks the connection of the submission, of the first question or of the image after so many bytes. */
  cutSubmissionAfterBytes?: number;
  cutQuestionAfterBytes?: number;
  cutImageAfterBytes?: number;
}

/** An answer as it stands. */
export interface PlainAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Record<string, string>;
}

interface FluxOptions extends StandInOptions {
  readonly apiKey?: string;
  /** How tasks go where nothing is queued: pending once, then ready, unless given. */
  readonly usual?: TaskBehaviour;
}

/** A running stand-in. */
export interface FluxUpstream extends StandIn {
  /** Queues how the next tasks go; others are pending once, then ready. */
  next(...behaviours: TaskBehaviour[]): void;
}

interface Task {
  readonly id: string;
  readonly body: FluxBody;
  readonly behaviour: TaskBehaviour;
  questions: number;
}

interface FluxBody {
  readonly prompt: string;
  readonly width: number;
  readonly height: number;
  readonly output_format: "jpeg" | "png";
  readonly inputs: readonly Buffer[];
}

const models = [
  "flux-2-max",
  "flux-2-pro",
  "flux-2-flex",
  "flux-2-klein-4b",
  "flux-2-klein-9b",
  "flux-pro-1.1",
];
const megapixel = 1024 * 1024;

/** Starts it on the loopback. */
export async function startFluxUpstream({
  apiKey = "test-key",
  usual,
  ...server
}: FluxOptions = {}): Promise<FluxUpstream> {
  const tasks = new Tasks(usual);
  const standIn = await startStandIn((request, answer) => {
    const origin = `http://${request.headers.host}`;
    const { pathname, searchParams } = new URL(request.path, origin);
    if (pathname.startsWith("/delivery/")) {
      return tasks.deliver(pathname.slice("/delivery/".length).split(".")[0] ?? "", answer);
    }
    if (request.headers["x-key"] !== apiKey) {
      const detail = "Not authenticated - Invalid Authentication";
      return sendJson(answer, { status: 403, body: { detail } });
    }
    if (request.method === "GET" && pathname === "/v1/get_result") {
      return tasks.answerQuestion(searchParams.get("id") ?? "", answer, origin);
    }
    return tasks.submit(pathname.replace(/^\/v1\//, ""), request, answer, origin);
  }, server);
  return { ...standIn, next: (...behaviours) => void tasks.queued.push(...behaviours) };
}

class Tasks {
  readonly queued: TaskBehaviour[] = [];
  readonly #tasks = new Map<string, Task>();
  readonly #source = createImageSource();
  readonly #usual: TaskBehaviour;

  constructor(usual: TaskBehaviour = {}) {
    this.#usual = usual;
  }

  submit(model: string, request: ReceivedRequest, answer: StandInAnswer, origin: string): Promise<void> {
    if (!models.includes(model)) return sendJson(answer, { status: 404, body: { detail: "Not Found" } });
    const checked = check(request.json);
    if ("faults" in checked) return sendJson(answer, { status: 422, body: { detail: checked.faults } });
    const behaviour = this.queued.shift() ?? this.#usual;
    if (behaviour.submission !== undefined) return sendJson(answer, behaviour.submission);
    const task: Task = { id: crypto.randomUUID(), body: checked, behaviour, questions: 0 };
    this.#tasks.set(task.id, task);
    const [outputMp, inputMp] = megapixelsOf(task.body);
    const reckoned = 3 + 1.5 * (outputMp - 1 + inputMp);
    const body = {
      id: task.id,
      polling_url: behaviour.pollingUrl ?? `${origin}/v1/get_result?id=${task.id}`,
      ...(behaviour.cost !== null && { cost: behaviour.cost ?? reckoned }),
      input_mp: inputMp,
      output_mp: outputMp,
    };
    return sendJson(answer, { status: 200, body }, behaviour.cutSubmissionAfterBytes);
  }

  async answerQuestion(id: string, answer: StandInAnswer, origin: string): Promise<void> {
    const task = this.#tasks.get(id);
    if (task === undefined) {
      return sendJson(answer, { status: 404, body: { id, status: "Task not found", result: null } });
    }
    const { behaviour } = task;
    const index = task.questions++;
    const gate = behaviour.beforeAnswer?.(index);
    if (gate !== undefined) await Promise.race([gate, answer.closed]);
    if (answer.isClosed) return;
    const { states = ["Pending", "Ready"] } = behaviour;
    const state = states[Math.min(index, states.length - 1)] ?? "Ready";
    if (typeof state !== "string") return sendJson(answer, state);
    const body = stateOf(task, state, origin);
    return sendJson(answer, { status: 200, body }, index === 0 ? behaviour.cutQuestionAfterBytes : undefined);
  }

  async deliver(id: string, answer: StandInAnswer): Promise<void> {
    const task = this.#tasks.get(id);
    const { expired, sample, cutImageAfterBytes } = task?.behaviour ?? {};
    if (task === undefined || expired !== undefined) {
      return sendJson(answer, { status: expired ?? 404, body: { error: "ResourceNotFound" } });
    }
    const { width, height, output_format: format } = task.body;
    const image =
      sample ?? (await this.#source.image({ format, width, height, isTransparent: false, shade: 90 }));
    return sendBytes(answer, 200, { "content-type": `image/${format}` }, image, cutImageAfterBytes);
  }
}

function stateOf({ id, body, behaviour }: Task, state: string, origin: string): object {
  const sample = behaviour.sampleUrl ?? `${origin}/delivery/${id}.${body.output_format}?sig=x`;
  const isReady = state === "Ready";
  return {
    id,
    status: state,
    result: isReady ? { sample, prompt: body.prompt, seed: 42, duration: 2.5 } : null,
    progress: null,
    details: /moderated/i.test(state) ? { "Moderation Reasons": ["Derivative Works Filter"] } : null,
    ...(isReady && behaviour.finalCost !== undefined && { cost: behaviour.finalCost }),
  };
}

function sendJson(
  answer: StandInAnswer,
  { status, body, headers }: PlainAnswer,
  cutAfterBytes?: number,
): Promise<void> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const all = { "content-type": "application/json", ...headers };
  return sendBytes(answer, status, all, Buffer.from(text), cutAfterBytes);
}

async function sendBytes(
  answer: StandInAnswer,
  status: number,
  headers: Record<string, string>,
  body: Buffer,
  cutAfterBytes?: number,
): Promise<void> {
  answer.start(status, { ...headers, "content-length": String(body.length) });
  if (cutAfterBytes === undefined) return answer.end(body);
  if (cutAfterBytes > 0) await answer.write(body.subarray(0, cutAfterBytes));
  await answer.cut();
}

function megapixelsOf({ width, height, inputs }: FluxBody): readonly [output: number, input: number] {
  const begun = (pixels: number) => Math.max(1, Math.ceil(pixels / megapixel));
  return [begun(width * height), inputs.length];
}

/** The body with its defaults, or FastAPI's faults. */
function check(json: unknown): FluxBody | { faults: readonly object[] } {
  const body = (typeof json === "object" && json !== null ? json : {}) as Record<string, unknown>;
  const faults: object[] = [];
  const fault = (name: string, msg: string) =>
    faults.push({ type: "value_error", loc: ["body", name], msg, input: body[name] });
  const { prompt, width = 1024, height = 1024, output_format: format = "jpeg", seed } = body;
  if (typeof prompt !== "string" || prompt === "") fault("prompt", "Field required");
  for (const [name, side] of Object.entries({ width, height })) {
    const isSide = Number.isInteger(side) && Number(side) >= 64 && Number(side) % 16 === 0;
    if (!isSide) fault(name, "Input should be a multiple of 16, at least 64");
  }
  if (Number(width) * Number(height) > 4 * megapixel) fault("width", "Output is limited to 4MP");
  if (format !== "jpeg" && format !== "png") fault("output_format", "Input should be 'jpeg' or 'png'");
  if (seed !== undefined && !Number.isInteger(seed)) fault("seed", "Input should be a valid integer");
  const inputs: Buffer[] = [];
  for (const [name, value] of Object.entries(body).filter(([key]) => /^input_image(_\d+)?$/.test(key))) {
    const bytes = typeof value === "string" ? Buffer.from(value, "base64") : Buffer.alloc(0);
    if (!/^(\x89PNG|\xff\xd8\xff|RIFF)/.test(bytes.toString("latin1", 0, 4))) fault(name, "Not an image");
    inputs.push(bytes);
  }
  if (faults.length > 0) return { faults };
  return { prompt, width, height, output_format: format, inputs } as FluxBody;
}
