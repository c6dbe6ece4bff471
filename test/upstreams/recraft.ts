/**
 * A stand-in for Recraft's API: "Generate image" of recraft.ai/docs/api-reference/endpoints, OpenAI's older parameters with the
 * vendor's own models and sizes, vectors by the model's name. Its errors are text or JSON, as its "Errors" page has it.
 */
import { createImageSource } from "./stand-in/image-source.ts";
import {
  type ReceivedRequest,
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "./stand-in/stand-in-server.ts";

/** How one valid request is answered. */
export interface RecraftBehaviour {
  /** In place of the images. */
  readonly refusal?: { readonly status: number; readonly body: unknown; readonly contentType?: string };
  /** Breaks the connection after so many bytes of the answer. */
  readonly cutAfterBytes?: number;
}

/** A running stand-in. */
export interface RecraftUpstream extends StandIn {
  /** Queues behaviours for the next valid requests, one each. */
  next(...behaviours: RecraftBehaviour[]): void;
}

const sizesOfV4 =
  "1024x1024 1536x768 768x1536 1280x832 832x1280 1216x896 896x1216 1152x896 896x1152 832x1344 1280x896 896x1280 1344x768 768x1344".split(
    " ",
  );
const sizesOfV3 =
  "1024x1024 2048x1024 1024x2048 1536x1024 1024x1536 1365x1024 1024x1365 1280x1024 1024x1280".split(" ");
const twice = (size: string) => size.replace(/\d+/g, (side) => String(2 * Number(side)));

/** Sizes, longest prompt and API units an image. */
const models: ReadonlyMap<string, readonly [sizes: readonly string[], longest: number, units: number]> =
  new Map([
    ["recraftv4_1", [sizesOfV4, 10_000, 35]],
    ["recraftv4_1_pro", [sizesOfV4.map(twice), 10_000, 210]],
    ["recraftv4_1_vector", [sizesOfV4, 10_000, 80]],
    ["recraftv3", [sizesOfV3, 1000, 40]],
    ["recraftv3_vector", [sizesOfV3, 1000, 80]],
  ]);
const parameters = [
  "prompt",
  "model",
  "n",
  "size",
  "response_format",
  "style",
  "substyle",
  "style_id",
  "controls",
];

/** Starts it on the loopback. */
export async function startRecraftUpstream({ apiKey = "test-key" } = {}): Promise<RecraftUpstream> {
  const queued: RecraftBehaviour[] = [];
  const source = createImageSource();

  const draw = async (request: ReceivedRequest, answer: StandInAnswer) => {
    const checked = check(request.json);
    if (typeof checked === "string") {
      return sendJson(answer, 400, { code: "invalid_request_parameter", message: checked });
    }
    const { refusal, cutAfterBytes } = queued.shift() ?? {};
    if (refusal !== undefined) {
      const { status, body, contentType = "application/json" } = refusal;
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return answer.send(status, { "content-type": contentType }, text);
    }
    const { n, isVector, isBase64, width, height, units } = checked;
    const data: object[] = [];
    for (let index = 0; index < n; index++) {
      const shade = 60 + 10 * index;
      const image = isVector
        ? drawVector(width, height, shade)
        : await source.image({ format: "webp", width, height, isTransparent: false, shade });
      const shown = isBase64
        ? { b64_json: image.toString("base64") }
        : { url: `https://img.recraft.invalid/${index}` };
      data.push({ image_id: crypto.randomUUID(), ...shown });
    }
    return sendJson(answer, 200, { created: 1_790_000_000, credits: units * n, data }, cutAfterBytes);
  };

  const standIn = await startStandIn((request, answer) => {
    const text = { "content-type": "text/plain" };
    if (`${request.method} ${request.path}` !== "POST /v1/images/generations") {
      return answer.send(404, text, "404 page not found");
    }
    if (request.headers.authorization !== `Bearer ${apiKey}`) {
      return answer.send(401, text, "request unauthorized");
    }
    return draw(request, answer);
  });
  return { ...standIn, next: (...behaviours) => void queued.push(...behaviours) };
}

function drawVector(width: number, height: number, shade: number): Buffer {
  const colour = `rgb(${shade},${shade},${shade})`;
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">` +
      `<path d="M0 0H${width}V${height}H0Z" fill="${colour}"/></svg>`,
  );
}

/** A valid body, or what is wrong with it. */
function check(json: unknown) {
  const body = (typeof json === "object" && json !== null ? json : {}) as Record<string, unknown>;
  const unknown = Object.keys(body).find((name) => !parameters.includes(name));
  if (unknown !== undefined) return `unknown parameter ${unknown}`;
  const { prompt, model = "recraftv4_1", n = 1, size = "1024x1024", response_format: format = "url" } = body;
  const [sizes, longest, units] = models.get(String(model)) ?? [[], 0, 0];
  if (sizes.length === 0) return "unknown model";
  if (typeof prompt !== "string" || prompt === "" || prompt.length > longest) return "invalid prompt";
  if (!Number.isInteger(n) || Number(n) < 1 || Number(n) > 6) return "invalid n";
  if (!sizes.includes(String(size))) return "unsupported size";
  if (format !== "url" && format !== "b64_json") return "invalid response_format";
  const [width = 0, height = 0] = String(size).split("x").map(Number);
  const isVector = String(model).endsWith("_vector");
  return { n: Number(n), isVector, isBase64: format === "b64_json", width, height, units };
}

async function sendJson(
  answer: StandInAnswer,
  status: number,
  body: object,
  cutAfterBytes?: number,
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(body));
  answer.start(status, { "content-type": "application/json", "content-length": String(bytes.length) });
  if (cutAfterBytes === undefined) return answer.end(bytes);
  if (cutAfterBytes > 0) await answer.write(bytes.subarray(0, cutAfterBytes));
  await answer.cut();
}
