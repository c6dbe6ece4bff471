/**
 * Stand-ins for xAI's images and for its text to speech, with the vendor's two error shapes (docs.x.ai, "Debugging errors") and
 * texts that it is known to send. References are taken as data URLs only.
 */
import { createImageSource } from "./stand-in/image-source.ts";
import {
  type RawSpeechWire,
  type SpeechRefusal,
  type SpeechUpstream,
  type SpeechUpstreamOptions,
  startRawSpeech,
} from "./stand-in/raw-speech.ts";
import { type StandIn, type StandInAnswer, startStandIn } from "./stand-in/stand-in-server.ts";

/** Refuses, or answers with exactly this. */
export interface GrokRefusal {
  kind: "refusal";
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

/** Draws. */
export interface GrokImages {
  kind: "images";
  /** What stands for each image; base64 by default. */
  content?: "b64_json" | "url" | "nothing" | "noise";
  /** Numbers of the images that are kept back. */
  moderated?: readonly number[];
  /** Images in the answer; as many as were asked for by default. */
  count?: number;
  /** What the answer reports; null leaves it out. */
  usage?: unknown;
  cutAfterBytes?: number;
  /** The images' addresses have run out. */
  expired?: boolean;
  /** What lies at an address is given out when it resolves. */
  beforeDelivery?: () => Promise<void>;
}

/** How one valid request is answered. */
export type GrokBehaviour = GrokRefusal | GrokImages;

/** A running stand-in. */
export interface GrokUpstream extends StandIn {
  /** Queues behaviours for the next valid requests, one each. */
  next(...behaviours: GrokBehaviour[]): void;
}

/** The gRPC codes in the words that the vendor has for them. */
export const grokCodes = {
  argument: "Client specified an invalid argument",
  unauthenticated: "The request does not have valid authentication credentials",
  permission: "The caller does not have permission to execute the specified operation",
  exhausted: "Some resource has been exhausted",
  missing: "Some requested entity was not found",
  unavailable: "The service is currently unavailable",
} as const;

const models = ["grok-imagine-image", "grok-imagine-image-2026-03-02", "grok-imagine-image-2.0"];
const voices = ["eve", "ara", "leo", "rex", "sal"];

/** Width and height of 1k by ratio; of 2k it is twice as much. */
const sizes: Readonly<Record<string, readonly [number, number]>> = {
  "1:1": [1024, 1024],
  "3:4": [896, 1280],
  "4:3": [1280, 896],
  "9:16": [768, 1408],
  "16:9": [1408, 768],
  "2:3": [864, 1296],
  "3:2": [1296, 864],
  "9:19.5": [576, 1248],
  "19.5:9": [1248, 576],
  "9:20": [576, 1280],
  "20:9": [1280, 576],
  "1:2": [704, 1408],
  "2:1": [1408, 704],
};

/** Starts a stand-in for the images. */
export async function startGrokUpstream({ apiKey = "test-key" } = {}): Promise<GrokUpstream> {
  const queued: GrokBehaviour[] = [];
  const images = new Images();
  const standIn = await startStandIn((request, answer) => {
    const { method, path, headers, json } = request;
    if (path.startsWith("/imgen/")) return images.deliver(path, answer);
    if (!/^POST \/v1\/images\/(generations|edits)$/.test(`${method} ${path}`))
      return answer.send(404, {}, "");
    const wrongKey = refuseKey(headers.authorization, apiKey);
    if (wrongKey !== undefined) return sendJson(answer, wrongKey);
    const checked = checkImages(json, path.endsWith("/edits"));
    if ("status" in checked) return sendJson(answer, checked);
    const behaviour = queued.shift() ?? { kind: "images" };
    if (behaviour.kind === "refusal") return sendJson(answer, behaviour);
    return images.send(checked, behaviour, answer, `http://${headers.host}`);
  });
  return { ...standIn, next: (...behaviours) => void queued.push(...behaviours) };
}

/** A key of another form is no key; one that is only wrong is an invalid argument. */
function refuseKey(authorization = "", apiKey: string): SpeechRefusal | undefined {
  if (authorization === `Bearer ${apiKey}`) return undefined;
  const key = authorization.slice("Bearer ".length);
  if (!key.startsWith("xai-"))
    return grokError(401, grokCodes.unauthenticated, "Invalid or missing credentials.");
  const text = `Incorrect API key provided: ${key.slice(0, 2)}***. You can obtain an API key from the console.`;
  return grokError(400, grokCodes.argument, text);
}

/** An error of all operations but speech. */
export function grokError(status: number, code: string, error: string): SpeechRefusal {
  return { status, body: { code, error } };
}

const contentTypes: Readonly<Record<string, string>> = { mp3: "audio/mpeg", pcm: "audio/pcm" };

const speechWire: RawSpeechWire = {
  read({ method, path, headers, json }, apiKey) {
    if (method !== "POST" || path !== "/v1/tts") return { status: 404, body: {} };
    const wrongKey = refuseKey(headers.authorization, apiKey);
    if (wrongKey !== undefined) return wrongKey;
    const body = (json ?? {}) as SpeechBody;
    const fault = findSpeechFault(body);
    if (fault !== undefined) return { status: 400, body: { error: fault } };
    const { codec = "mp3" } = body.output_format ?? {};
    const contentType = contentTypes[codec] ?? "audio/mpeg";
    return {
      input: body.text,
      format: codec,
      headers: { "content-type": contentType, "x-trace-id": "a1b2" },
    };
  },
  refusal: ({ status, message = "The stand-in was told to refuse." }) => ({
    status,
    body: { error: message },
  }),
};

/** Starts a stand-in for the text to speech. */
export function startGrokSpeech(options: SpeechUpstreamOptions = {}): Promise<SpeechUpstream> {
  return startRawSpeech(speechWire, options);
}

interface SpeechBody {
  readonly text: string;
  readonly voice_id?: string;
  readonly language?: string;
  readonly speed?: number;
  readonly output_format?: { readonly codec?: "mp3" | "pcm"; readonly sample_rate?: number };
}

function findSpeechFault({
  text,
  voice_id,
  language,
  speed = 1,
  output_format,
}: SpeechBody): string | undefined {
  if (typeof text !== "string" || text === "") return "text is required";
  if ([...text].length > 15_000) return "text must be at most 15000 characters";
  if (typeof language !== "string") return "language is required";
  if (voice_id !== undefined && !voices.includes(voice_id)) return `voice ${voice_id} was not found`;
  if (!(speed >= 0.7 && speed <= 1.5)) return "speed must be between 0.7 and 1.5";
  const { codec = "mp3", sample_rate: rate = 24_000 } = output_format ?? {};
  if (contentTypes[codec] === undefined) return "the stand-in makes mp3 and pcm";
  return [8000, 16_000, 22_050, 24_000, 44_100, 48_000].includes(rate) ? undefined : "unknown sample_rate";
}

interface ImagesBody {
  readonly n: number;
  readonly width: number;
  readonly height: number;
  readonly isBase64: boolean;
  readonly inputs: number;
}

/** A valid body, or what the vendor says against it. */
function checkImages(json: unknown, isEdit: boolean): ImagesBody | Omit<GrokRefusal, "kind"> {
  if (typeof json !== "object" || json === null) {
    return { status: 422, body: "Failed to deserialize the JSON body into the target type" };
  }
  const body = json as Record<string, unknown>;
  if (!models.includes(String(body.model))) {
    return grokError(404, grokCodes.missing, `The model ${String(body.model)} does not exist.`);
  }
  const fault = findImagesFault(body, isEdit);
  if (fault !== undefined) return grokError(400, grokCodes.argument, fault);
  const inputs = inputsOf(body);
  const times = body.resolution === "2k" ? 2 : 1;
  const [width, height] = sizes[String(body.aspect_ratio ?? "1:1")] ?? [1024, 1024];
  return {
    n: Number(body.n ?? 1),
    width: width * times,
    height: height * times,
    isBase64: body.response_format === "b64_json",
    inputs: inputs.length,
  };
}

function inputsOf({ image, images }: Record<string, unknown>): readonly unknown[] {
  return [...(image === undefined ? [] : [image]), ...(Array.isArray(images) ? images : [])];
}

function findImagesFault(body: Record<string, unknown>, isEdit: boolean): string | undefined {
  const { prompt, n = 1, aspect_ratio: ratio = "auto", resolution = "1k", quality = "medium" } = body;
  const unknown = ["size", "style", "mask"].find((name) => body[name] !== undefined);
  if (unknown !== undefined) return `Argument not supported: ${unknown}`;
  if (typeof prompt !== "string" || prompt === "") return "prompt is required";
  if (!Number.isInteger(n) || Number(n) < 1 || Number(n) > 10) return "n must be between 1 and 10";
  if (ratio !== "auto" && sizes[String(ratio)] === undefined) return "unknown aspect_ratio";
  if (resolution !== "1k" && resolution !== "2k") return "unknown resolution";
  if (!["low", "medium", "high"].includes(String(quality))) return "unknown quality";
  const inputs = inputsOf(body);
  if (!isEdit) return undefined;
  if (inputs.length < 1 || inputs.length > 3) return "between 1 and 3 images are required";
  const isDataUrl = (input: unknown) =>
    /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/]+=*$/.test(String((input as { url?: unknown }).url));
  return inputs.every(isDataUrl) ? undefined : "images must be data URLs here";
}

class Images {
  readonly #source = createImageSource();
  /** What lies at addresses, by path. */
  readonly #delivered = new Map<string, { readonly image: Buffer; wait?(): Promise<void> }>();

  async send(body: ImagesBody, behaviour: GrokImages, answer: StandInAnswer, origin: string): Promise<void> {
    const data: object[] = [];
    for (let index = 0; index < (behaviour.count ?? body.n); index++) {
      const isKept = behaviour.moderated?.includes(index) ?? false;
      const shown = isKept ? { url: "" } : await this.#show(body, behaviour, index, origin);
      data.push({ ...shown, mime_type: "image/jpeg", revised_prompt: "", respect_moderation: !isKept });
    }
    const usual = { cost_in_usd_ticks: 200_000_000 * body.n + 20_000_000 * body.inputs };
    const { usage = usual } = behaviour;
    const text = Buffer.from(JSON.stringify({ data, ...(usage !== null && { usage }) }));
    answer.start(200, { "content-type": "application/json", "content-length": String(text.length) });
    const { cutAfterBytes } = behaviour;
    if (cutAfterBytes === undefined) return answer.end(text);
    if (cutAfterBytes > 0) await answer.write(text.subarray(0, cutAfterBytes));
    await answer.cut();
  }

  async #show(body: ImagesBody, behaviour: GrokImages, index: number, origin: string): Promise<object> {
    const content = behaviour.content ?? (body.isBase64 ? "b64_json" : "url");
    if (content === "nothing") return {};
    if (content === "noise") return { b64_json: Buffer.from("<p>text</p>").toString("base64") };
    const { width, height } = body;
    const shade = 40 + 10 * index;
    const image = await this.#source.image({ format: "jpeg", width, height, isTransparent: false, shade });
    if (content === "b64_json") return { b64_json: image.toString("base64") };
    const path = `/imgen/${crypto.randomUUID()}.jpeg`;
    const { expired, beforeDelivery: wait } = behaviour;
    if (expired !== true) this.#delivered.set(path, { image, ...(wait !== undefined && { wait }) });
    return { url: `${origin}${path}` };
  }

  async deliver(path: string, answer: StandInAnswer): Promise<void> {
    const { image, wait } = this.#delivered.get(path) ?? {};
    if (wait !== undefined) await Promise.race([wait(), answer.closed]);
    const type = { "content-type": "image/jpeg" };
    answer.start(image === undefined ? 404 : 200, { ...type, "content-length": String(image?.length ?? 0) });
    answer.end(image);
  }
}

function sendJson(answer: StandInAnswer, { status, body, headers }: Omit<GrokRefusal, "kind">): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  answer.send(status, { "content-type": "application/json", ...headers }, text);
}
