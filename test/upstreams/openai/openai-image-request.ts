import type { ReceivedRequest } from "../stand-in/stand-in-server.ts";
import { invalid, type Refusal, refusal } from "./openai-request.ts";

/** A valid request for images, with the vendor's defaults filled in. */
export interface ImageRequestBody {
  model: string;
  prompt: string;
  n: number;
  size: string;
  quality: string;
  background: "auto" | "transparent" | "opaque";
  output_format: "png" | "jpeg" | "webp";
  output_compression: number;
  stream: boolean;
  partial_images: number;
  /** What to start from; empty for generations. */
  images: File[];
}

/** The images that a vendor of this wire shape offers; it refuses everything else. */
export interface ImageOffer {
  readonly models: readonly string[];
  /** All sizes that a model makes besides "auto"; undefined: any that OpenAI's newer models can make. */
  sizesOf(model: string): readonly string[] | undefined;
  /** Parameters that it takes besides OpenAI's newer ones, such as `response_format`. */
  readonly parameters?: readonly string[];
}

const modelsWithListedSizes: readonly string[] = ["gpt-image-1-mini", "gpt-image-1.5"];
const modelsWithMoreQualities = /^gpt-image-2\.[56]-(sunburst|flare)/;
const models: readonly string[] = [
  ...modelsWithListedSizes,
  ...["gpt-image-2", "gpt-image-2-2026-04-21", "gpt-image-2.5-sunburst", "gpt-image-2.5-flare"],
  ...["gpt-image-2.5-sunburst-2026-09-08", "gpt-image-2.5-flare-2026-09-08"],
  ...["gpt-image-2.6-sunburst", "gpt-image-2.6-flare", "chatgpt-image-latest"],
];
const listedSizes: readonly string[] = ["1024x1024", "1536x1024", "1024x1536"];
const openAiImages: ImageOffer = {
  models,
  sizesOf: (model) => (modelsWithListedSizes.includes(model) ? listedSizes : undefined),
};
const longestPrompt = 32_000;
const mostImages = 16;

const parameters: readonly string[] = [
  ...["model", "prompt", "n", "size", "quality", "background", "output_format", "output_compression"],
  ...["stream", "partial_images", "moderation", "user", "safety_identifier", "complexity"],
];
const editParameters: readonly string[] = [...parameters, "image", "image[]", "mask", "input_fidelity"];

/** The form in a request's body; undefined where there is none. */
export async function readForm({ bytes, headers }: ReceivedRequest): Promise<FormData | undefined> {
  const contentType = headers["content-type"] ?? "";
  try {
    return await new Response(bytes, { headers: { "content-type": contentType } }).formData();
  } catch {
    return undefined;
  }
}

/** A request's body, or what the vendor says against it. */
export type CheckedImageRequest = { body: ImageRequestBody } | { refusal: Refusal };

/** Checks a body of "create image" as the vendor documents it. */
export function checkGeneration(json: unknown, offer: ImageOffer = openAiImages): CheckedImageRequest {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return { refusal: refusal(400, "The body is not a JSON object.", null, null) };
  }
  return check(json as Record<string, unknown>, parameters, [], offer);
}

/** Checks a form of "create image edit" as the vendor documents it. */
export async function checkEdit(
  request: ReceivedRequest,
  offer: ImageOffer = openAiImages,
): Promise<CheckedImageRequest> {
  const form = await readForm(request);
  if (form === undefined) return { refusal: refusal(400, "The body is not a form.", null, null) };
  const images = [...form.getAll("image"), ...form.getAll("image[]")].filter((part) => part instanceof File);
  if (images.length === 0) {
    return { refusal: refusal(400, "image is missing.", "image", "missing_required_parameter") };
  }
  if (images.length > mostImages) return { refusal: invalid("image") };
  for (const image of images) {
    if (await isForeign(image))
      return { refusal: refusal(400, "No such image.", "image", "invalid_image_file") };
  }
  const mask = form.get("mask");
  if (mask !== null && !(mask instanceof File && mask.type === "image/png" && !(await isForeign(mask)))) {
    return { refusal: refusal(400, "No such mask.", "mask", "invalid_image_file") };
  }
  const fields: Record<string, unknown> = {};
  for (const [name, value] of form) {
    if (!(value instanceof File)) fields[name] = parseField(name, value);
    else if (!editParameters.includes(name)) fields[name] = value;
  }
  return check(fields, editParameters, images, offer);
}

/** Whether a file is not what it says it is, or nothing that the vendor takes. */
async function isForeign(file: File): Promise<boolean> {
  const magic = Buffer.from(await file.slice(0, 12).arrayBuffer()).toString("latin1");
  if (file.type === "image/png") return !magic.startsWith("\x89PNG\r\n\x1a\n");
  if (file.type === "image/jpeg") return !magic.startsWith("\xff\xd8\xff");
  return !(file.type === "image/webp" && magic.startsWith("RIFF") && magic.endsWith("WEBP"));
}

function parseField(name: string, value: string): unknown {
  if (["n", "output_compression", "partial_images"].includes(name))
    return /^\d+$/.test(value) ? Number(value) : value;
  return name === "stream" && /^(true|false)$/.test(value) ? value === "true" : value;
}

function check(
  body: Record<string, unknown>,
  known: readonly string[],
  images: File[],
  offer: ImageOffer,
): CheckedImageRequest {
  const fault = findFault(body, known, offer);
  if (fault !== undefined) return { refusal: fault };
  const filled = {
    n: 1,
    size: "auto",
    quality: "auto",
    background: "auto",
    output_format: "png",
    output_compression: 100,
    stream: false,
    partial_images: 0,
    ...body,
    images,
  };
  return { body: filled as unknown as ImageRequestBody };
}

function findFault(
  body: Record<string, unknown>,
  known: readonly string[],
  offer: ImageOffer,
): Refusal | undefined {
  const { model, prompt, stream, n = 1 } = body;
  const taken = [...known, ...(offer.parameters ?? [])];
  const unknown = Object.keys(body).find((name) => !taken.includes(name));
  if (unknown !== undefined)
    return refusal(400, `Unknown parameter: '${unknown}'.`, unknown, "unknown_parameter");
  if (typeof model !== "string")
    return refusal(400, "model is missing.", "model", "missing_required_parameter");
  if (!offer.models.includes(model))
    return refusal(404, "There is no such model.", "model", "model_not_found");
  if (typeof prompt !== "string")
    return refusal(400, "prompt is missing.", "prompt", "missing_required_parameter");
  if (prompt.length === 0) return refusal(400, "prompt is too short.", "prompt", "string_too_short");
  if ([...prompt].length > longestPrompt)
    return refusal(400, "prompt is too long.", "prompt", "string_too_long");
  if (!isCount(n, 1, 10)) return invalid("n");
  if (stream !== undefined && typeof stream !== "boolean") return invalid("stream");
  if (stream === true && n !== 1) return refusal(400, "Streaming is only supported with n=1.", "n", null);
  return findFaultOfOutput(body, model, offer);
}

function findFaultOfOutput(
  body: Record<string, unknown>,
  model: string,
  offer: ImageOffer,
): Refusal | undefined {
  const { size = "auto", quality = "auto", background = "auto", output_format: format = "png" } = body;
  const { output_compression: compression = 100, partial_images: partials = 0, moderation = "auto" } = body;
  const sizes = offer.sizesOf(model);
  const isPossible = sizes === undefined ? isPossibleSize(size) : ["auto", ...sizes].includes(String(size));
  if (!isPossible) return invalid("size");
  const qualities = modelsWithMoreQualities.test(model)
    ? /^(auto|low|medium|high|xhigh|max)$/
    : /^(auto|low|medium|high)$/;
  if (!qualities.test(String(quality))) return invalid("quality");
  if (!/^(auto|transparent|opaque)$/.test(String(background))) return invalid("background");
  if (!/^(png|jpeg|webp)$/.test(String(format))) return invalid("output_format");
  if (background === "transparent" && format === "jpeg") return invalid("background");
  if (!isCount(compression, 0, 100)) return invalid("output_compression");
  if (format === "png" && compression !== 100) return invalid("output_compression");
  if (!isCount(partials, 0, 3)) return invalid("partial_images");
  return moderation === "auto" || moderation === "low" ? undefined : invalid("moderation");
}

function isCount(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
}

function isPossibleSize(size: unknown): boolean {
  if (size === "auto") return true;
  const [, width = 0, height = 0] = /^(\d+)x(\d+)$/.exec(String(size))?.map(Number) ?? [];
  const [short, long] = width < height ? [width, height] : [height, width];
  const pixels = width * height;
  const fits = long <= 3840 && pixels >= 655_360 && pixels <= 8_294_400;
  return fits && width % 16 === 0 && height % 16 === 0 && long <= 3 * short;
}
