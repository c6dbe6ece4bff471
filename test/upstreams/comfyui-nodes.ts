/** The nodes that the stand-in for ComfyUI knows, and how it validates a graph (execution.py, nodes.py). */

type Fields = Readonly<Record<string, unknown>>;

/** A graph as it is posted. */
export type PostedGraph = Readonly<Record<string, { readonly class_type: string; readonly inputs: Fields }>>;

/** An input: one of a list, a number within bounds, a text, or a link to what another node makes. */
type InputKind =
  | readonly string[]
  | { readonly min: number; readonly max: number }
  | "text"
  | "link"
  | "stored image";

const size = { min: 16, max: 16_384 };
const seed = { min: 0, max: Number.MAX_SAFE_INTEGER };

const nodes: Readonly<Record<string, Readonly<Record<string, InputKind>>>> = {
  CheckpointLoaderSimple: { ckpt_name: ["sd_xl_base_1.0.safetensors", "v1-5-pruned-emaonly.safetensors"] },
  CLIPTextEncode: { text: "text", clip: "link" },
  EmptyLatentImage: { width: size, height: size, batch_size: { min: 1, max: 64 } },
  LoadImage: { image: "stored image" },
  VAEEncode: { pixels: "link", vae: "link" },
  ImageScale: {
    ...{ image: "link", width: size, height: size, crop: ["disabled", "center"] },
    upscale_method: ["nearest-exact", "bilinear", "area", "bicubic", "lanczos"],
  },
  RepeatLatentBatch: { samples: "link", amount: { min: 1, max: 64 } },
  KSampler: {
    ...{ model: "link", positive: "link", negative: "link", latent_image: "link" },
    ...{ seed, steps: { min: 1, max: 10_000 }, cfg: { min: 0, max: 100 }, denoise: { min: 0, max: 1 } },
    ...{ sampler_name: ["euler", "dpmpp_2m"], scheduler: ["normal", "karras"] },
  },
  VAEDecode: { samples: "link", vae: "link" },
  SaveImage: { images: "link", filename_prefix: "text" },
  PreviewImage: { images: "link" },
};

/** Nodes whose images are kept, and where. */
export const outputNodes: ReadonlyMap<string, string> = new Map([
  ["SaveImage", "output"],
  ["PreviewImage", "temp"],
]);

/** What is answered to a graph that can't run; undefined where it can. */
export function graphRefusal(graph: unknown, isStored: (name: string) => boolean): object | undefined {
  if (typeof graph !== "object" || graph === null) {
    return {
      error: { type: "no_prompt", message: "No prompt provided", details: "", extra_info: {} },
      node_errors: {},
    };
  }
  const entries = Object.entries(graph as PostedGraph);
  const foreign = entries.find(([, { class_type }]) => nodes[class_type] === undefined);
  if (foreign !== undefined) {
    const [id, { class_type }] = foreign;
    const message = `Cannot execute because node ${class_type} does not exist.`;
    const error = { type: "invalid_prompt", message, details: `Node ID '#${id}'`, extra_info: {} };
    return { error, node_errors: {} };
  }
  if (!entries.some(([, { class_type }]) => outputNodes.has(class_type))) {
    const error = {
      type: "prompt_no_outputs",
      message: "Prompt has no outputs",
      details: "",
      extra_info: {},
    };
    return { error, node_errors: [] };
  }
  const faulty = entries.flatMap(([id, node]) => {
    const errors = faultsOf(node, isStored);
    return errors.length === 0
      ? []
      : [[id, { errors, dependent_outputs: [], class_type: node.class_type }] as const];
  });
  if (faulty.length === 0) return undefined;
  const details = faulty.flatMap(([, { errors }]) =>
    errors.map((each) => `${each.message}: ${each.details}`),
  );
  const message = "Prompt outputs failed validation";
  const error = {
    type: "prompt_outputs_failed_validation",
    message,
    details: details.join("\n"),
    extra_info: {},
  };
  return { error, node_errors: Object.fromEntries(faulty) };
}

function faultsOf({ class_type, inputs }: PostedGraph[string], isStored: (name: string) => boolean) {
  return Object.entries(nodes[class_type] ?? {}).flatMap(([name, kind]) => {
    const value = inputs[name];
    const fault = (type: string, message: string, details: string) => [
      { type, message, details, extra_info: { input_name: name } },
    ];
    if (value === undefined) return fault("required_input_missing", "Required input is missing", name);
    if (kind === "link")
      return Array.isArray(value) ? [] : fault("bad_linked_input", "Bad linked input", name);
    if (kind === "text") return [];
    if (kind === "stored image") {
      const message = "Custom validation failed for node";
      return isStored(String(value)) ? [] : fault("custom_validation_failed", message, `image - ${value}`);
    }
    if ("min" in kind) {
      const number = Number(value);
      if (Number.isNaN(number))
        return fault("invalid_input_type", "Failed to convert an input value", `${name}, ${value}`);
      if (number < kind.min) return fault("value_smaller_than_min", `Value ${value} smaller than min`, name);
      return number > kind.max ? fault("value_bigger_than_max", `Value ${value} bigger than max`, name) : [];
    }
    const details = `${name}: '${value}' not in ${JSON.stringify(kind)}`;
    return kind.includes(String(value)) ? [] : fault("value_not_in_list", "Value not in list", details);
  });
}
