/**
 * A stand-in for ComfyUI over real HTTP and a real websocket, by its sources (server.py, execution.py, nodes.py); proven
 * by a client that others wrote.
 *
 * - One prompt runs at a time. A graph that was run before makes nothing anew, and there are no images then.
 * - Messages go to the client of a prompt. Previews of one without a client go to everybody.
 * - Files hold the graph that made them.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause, setImmediate as tick } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { graphRefusal, outputNodes, type PostedGraph } from "./comfyui-nodes.ts";
import { createImageSource } from "./stand-in/image-source.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "./stand-in/stand-in-server.ts";
import { acceptWebSocket, type StandInWebSocket } from "./stand-in/stand-in-web-socket.ts";

/** How the next prompt goes. */
export interface ComfyuiBehaviour {
  /** How many pictures of it are sent while it runs, each twice; what `[[previews=N]]` in its text says unless given. */
  readonly previews?: number;
  /** Awaited amid its work, after the previews. */
  readonly until?: Promise<void>;
  /** Fails at its sampler. */
  readonly error?: { readonly type: string; readonly message: string };
  /** Somebody interrupts it. */
  readonly isInterrupted?: boolean;
  /** Its client's websocket breaks before it starts. */
  readonly cutsSocket?: boolean;
}

/** A prompt as the server knows it. */
export interface ComfyuiPrompt {
  readonly id: string;
  readonly clientId: string | undefined;
  readonly graph: PostedGraph;
  readonly behaviour: ComfyuiBehaviour;
  state: "waiting" | "running" | "done" | "deleted";
}

/** Options of startComfyuiUpstream. */
export interface ComfyuiUpstreamOptions {
  /** `user:password` that a proxy before it wants. */
  readonly auth?: string;
  /** Whether it takes ids of prompts from its clients, as newer ones do. */
  readonly takesIds?: boolean;
  /** Whether previews say whose they are (event 4), which newer ones do for clients that ask for it. */
  readonly previewsWithMetadata?: boolean;
}

/** What happens to one answer in the place of the usual one. */
export interface ComfyuiAnswer {
  readonly path: RegExp;
  readonly status?: number;
  readonly body?: string;
  /** Waits for one that is as long. */
  readonly cutAfterBytes?: number;
}

/** A running stand-in. */
export interface ComfyuiUpstream extends StandIn {
  readonly prompts: readonly ComfyuiPrompt[];
  /** Websockets that are open now. */
  openSockets(): number;
  /** Bytes of stored files by name. */
  readonly files: ReadonlyMap<string, Buffer>;
  next(...behaviours: ComfyuiBehaviour[]): void;
  /** Applies to the next request of such a path. */
  answer(...answers: ComfyuiAnswer[]): void;
}

const json = { "content-type": "application/json; charset=utf-8" };

/** Starts it on the loopback. */
export async function startComfyuiUpstream(options: ComfyuiUpstreamOptions = {}): Promise<ComfyuiUpstream> {
  const server = new ComfyuiServer(options);
  const standIn = await startStandIn((request, answer) => server.handle(request, answer), {
    onUpgrade: (message, socket) => {
      const url = new URL(message.url ?? "", "http://localhost");
      if (!/^(\/api)?\/ws$/.test(url.pathname) || !server.lets(message.headers.authorization)) {
        socket.end("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
        return;
      }
      server.connect(url.searchParams.get("clientId") ?? randomUUID(), acceptWebSocket(message, socket));
    },
  });
  return {
    ...standIn,
    prompts: server.prompts,
    files: server.files,
    openSockets: () => server.sockets().length,
    next: (...behaviours) => void server.behaviours.push(...behaviours),
    answer: (...answers) => void server.answers.push(...answers),
  };
}

class ComfyuiServer {
  readonly prompts: ComfyuiPrompt[] = [];
  readonly files = new Map<string, Buffer>();
  readonly behaviours: ComfyuiBehaviour[] = [];
  readonly answers: ComfyuiAnswer[] = [];
  readonly #options: ComfyuiUpstreamOptions;
  readonly #clients = new Map<string, StandInWebSocket>();
  readonly #history = new Map<string, object>();
  readonly #seen = new Set<string>();
  readonly #images = createImageSource();
  #last: Promise<void> = Promise.resolve();

  constructor(options: ComfyuiUpstreamOptions) {
    this.#options = options;
  }

  lets(authorization: string | undefined): boolean {
    const { auth } = this.#options;
    return auth === undefined || authorization === `Basic ${Buffer.from(auth).toString("base64")}`;
  }

  sockets(): readonly StandInWebSocket[] {
    return [...this.#clients.values()].filter(({ isClosed }) => !isClosed);
  }

  connect(clientId: string, socket: StandInWebSocket): void {
    this.#clients.set(clientId, socket);
    socket.send(JSON.stringify({ type: "status", data: { status: this.#queueInfo(), sid: clientId } }));
  }

  async handle(request: ReceivedRequest, answer: StandInAnswer): Promise<void> {
    if (!this.lets(request.headers.authorization)) return answer.send(401, {}, "<h1>401</h1>");
    const url = new URL(request.path, "http://localhost");
    const path = `${request.method} ${url.pathname.replace(/^\/api\//, "/")}`;
    const { status, body, type } = await this.#answerTo(path, url.searchParams, request);
    const odd = this.answers.findIndex(
      (each) => each.path.test(path) && (each.cutAfterBytes ?? -1) < body.length,
    );
    const [instead] = odd < 0 ? [] : this.answers.splice(odd, 1);
    const bytes = Buffer.from(instead?.body ?? body);
    answer.start(instead?.status ?? status, { "content-type": type, "content-length": String(bytes.length) });
    if (instead?.cutAfterBytes === undefined) return answer.end(bytes);
    await answer.write(bytes.subarray(0, instead.cutAfterBytes));
    await answer.cut();
  }

  async #answerTo(path: string, query: URLSearchParams, request: ReceivedRequest) {
    const of = (body: unknown, status = 200) => ({
      status,
      body: Buffer.from(body === undefined ? "" : JSON.stringify(body)),
      type: json["content-type"],
    });
    const [, id = ""] = /^GET \/history\/(.+)$/.exec(path) ?? [];
    if (id !== "") return of(this.#history.has(id) ? { [id]: this.#history.get(id) } : {});
    if (path === "GET /history") return of(Object.fromEntries(this.#history));
    if (path === "GET /prompt") return of(this.#queueInfo());
    if (path === "GET /queue") return of(this.#queue());
    if (path === "POST /prompt") return of(...this.#post(request.json as Record<string, unknown>));
    if (path === "POST /queue") return of(this.#delete(request.json as { delete?: string[] }));
    if (path === "POST /upload/image") return of(await this.#upload(request));
    if (path === "GET /view") {
      const name = `${query.get("subfolder") || ""}${query.get("filename")} [${query.get("type")}]`;
      const body = this.files.get(name);
      return body === undefined ? of(undefined, 404) : { status: 200, body, type: "image/png" };
    }
    return of(undefined, 404);
  }

  #queueInfo() {
    const left = this.prompts.filter(({ state }) => state === "waiting" || state === "running").length;
    return { exec_info: { queue_remaining: left } };
  }

  #queue() {
    const items = (state: ComfyuiPrompt["state"]) =>
      this.prompts.flatMap((prompt, number) =>
        prompt.state === state ? [[number, prompt.id, prompt.graph, { client_id: prompt.clientId }, []]] : [],
      );
    return { queue_running: items("running"), queue_pending: items("waiting") };
  }

  #post(body: Readonly<Record<string, unknown>>): [body: object, status?: number] {
    const refusal = graphRefusal(body.prompt, (name) => this.files.has(name));
    if (refusal !== undefined) return [refusal, 400];
    const given = this.#options.takesIds === false ? undefined : body.prompt_id;
    const prompt: ComfyuiPrompt = {
      id: typeof given === "string" ? given : randomUUID(),
      clientId: typeof body.client_id === "string" ? body.client_id : undefined,
      graph: body.prompt as PostedGraph,
      behaviour: this.behaviours.shift() ?? {},
      state: "waiting",
    };
    this.prompts.push(prompt);
    this.#last = this.#last.then(() => this.#run(prompt));
    return [{ prompt_id: prompt.id, number: this.prompts.length, node_errors: {} }];
  }

  #delete({ delete: ids = [] }: { delete?: string[] }): undefined {
    for (const prompt of this.prompts) {
      if (prompt.state === "waiting" && ids.includes(prompt.id)) prompt.state = "deleted";
    }
  }

  async #upload({ bytes, headers }: ReceivedRequest): Promise<object> {
    const form = await new Response(bytes, {
      headers: { "content-type": String(headers["content-type"]) },
    }).formData();
    const file = form.get("image") as File;
    const type = String(form.get("type") ?? "input");
    this.files.set(`${file.name} [${type}]`, Buffer.from(await file.arrayBuffer()));
    return { name: file.name, subfolder: "", type };
  }

  async #run(prompt: ComfyuiPrompt): Promise<void> {
    // The answer to the one who posts it goes out first.
    await tick();
    if (prompt.state === "deleted") return;
    prompt.state = "running";
    const { behaviour, graph, id } = prompt;
    if (behaviour.cutsSocket === true) this.#clients.get(prompt.clientId ?? "")?.cut();
    const messages: [string, object][] = [];
    const tell = (type: string, data: object) => {
      messages.push([type, { prompt_id: id, ...data }]);
      this.#tell(prompt, type, { prompt_id: id, ...data });
    };
    tell("execution_start", {});
    const isKnown = this.#seen.has(JSON.stringify(graph));
    tell("execution_cached", { nodes: isKnown ? Object.keys(graph) : [] });
    let outputs: object = {};
    if (!isKnown) {
      await this.#sample(prompt);
      const failure = failureOf(behaviour);
      if (failure === undefined) {
        outputs = await this.#store(prompt);
        for (const [node, output] of Object.entries(outputs)) {
          this.#tell(prompt, "executed", { node, display_node: node, output, prompt_id: id });
        }
        this.#seen.add(JSON.stringify(graph));
      } else tell(...failure);
    }
    const isGood = failureOf(behaviour) === undefined;
    if (isGood) tell("execution_success", {});
    prompt.state = "done";
    const status = { status_str: isGood ? "success" : "error", completed: isGood, messages };
    this.#history.set(id, { prompt: [1, id, graph, {}, []], outputs, status, meta: {} });
    this.#tell(prompt, "executing", { node: null, prompt_id: id });
  }

  /** As its sampler does: progress, and a preview with each step that has one. */
  async #sample({ behaviour, graph, ...prompt }: ComfyuiPrompt): Promise<void> {
    const [node = ""] = Object.keys(graph).filter((id) => graph[id]?.class_type === "KSampler");
    this.#tell(prompt, "executing", { node, display_node: node, prompt_id: prompt.id });
    const previews =
      behaviour.previews ?? Number(/\[\[previews=(\d+)\]\]/.exec(JSON.stringify(graph))?.[1] ?? 0);
    for (let step = 0; step < 2 * previews; step += 1) {
      const spec = { format: "jpeg", width: 64, height: 64, isTransparent: false } as const;
      const image = await this.#images.image({ ...spec, shade: 255 - Math.floor(step / 2) });
      this.#tell(prompt, "progress", { value: step, max: 2 * previews, prompt_id: prompt.id, node });
      this.#show(prompt, image);
      await pause(10);
    }
    await behaviour.until;
  }

  #show({ id, clientId }: Pick<ComfyuiPrompt, "id" | "clientId">, image: Buffer): void {
    const head = Buffer.alloc(8);
    const isMetadata = this.#options.previewsWithMetadata === true;
    const metadata = Buffer.from(JSON.stringify({ node_id: "3", prompt_id: id }));
    head.writeUInt32BE(isMetadata ? 4 : 1, 0);
    head.writeUInt32BE(isMetadata ? metadata.length : 1, 4);
    const frame = Buffer.concat([head, ...(isMetadata ? [metadata] : []), image]);
    const to = clientId === undefined ? this.sockets() : [this.#clients.get(clientId)];
    for (const socket of to) socket?.send(frame);
  }

  #tell({ clientId }: Pick<ComfyuiPrompt, "clientId">, type: string, data: object): void {
    if (clientId !== undefined) this.#clients.get(clientId)?.send(JSON.stringify({ type, data }));
  }

  async #store({ graph }: ComfyuiPrompt): Promise<object> {
    const first = (name: string) =>
      Object.values(graph).find(({ inputs }) => typeof inputs[name] === "number")?.inputs[name];
    const count = Number(first("batch_size") ?? first("amount") ?? 1);
    const spec = { format: "png", isTransparent: false, width: Number(first("width") ?? 64) } as const;
    const outputs: Record<string, { images: object[] }> = {};
    for (const [node, { class_type, inputs }] of Object.entries(graph)) {
      const type = outputNodes.get(class_type);
      if (type === undefined) continue;
      const images = Array.from({ length: count }, (_, index) => index).map(async (index) => {
        const shade = (Number(first("seed")) + index) % 256;
        const image = await this.#images.image({ ...spec, height: Number(first("height") ?? 64), shade });
        const filename = `${inputs.filename_prefix ?? "ComfyUI_temp"}_${String(index + 1).padStart(5, "0")}_.png`;
        this.files.set(`${filename} [${type}]`, withText(image, JSON.stringify(graph)));
        return { filename, subfolder: "", type };
      });
      outputs[node] = { images: await Promise.all(images) };
    }
    return outputs;
  }
}

function failureOf({ error, isInterrupted }: ComfyuiBehaviour): [type: string, data: object] | undefined {
  const at = { node_id: "3", node_type: "KSampler", executed: [] };
  if (isInterrupted === true) return ["execution_interrupted", at];
  if (error === undefined) return undefined;
  const { type: exception_type, message: exception_message } = error;
  return ["execution_error", { ...at, exception_type, exception_message, traceback: [], current_inputs: {} }];
}

/** A PNG with a text before its last chunk. */
function withText(png: Buffer, text: string): Buffer {
  const content = Buffer.from(`tEXtprompt\0${text}`, "latin1");
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length - 4);
  sum.writeUInt32BE(crc32(content));
  const end = png.length - 12;
  return Buffer.concat([png.subarray(0, end), length, content, sum, png.subarray(end)]);
}
