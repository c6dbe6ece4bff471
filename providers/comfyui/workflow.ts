import { randomInt } from "node:crypto";
import type { ImageCall } from "../contract.ts";
import { SettingsFault } from "../declared-endpoint.ts";
import { isRecord } from "../upstream/failure.ts";

/** A workflow as ComfyUI exports it for its API: nodes by their ids. */
export type Graph = Readonly<Record<string, { readonly class_type: string; readonly inputs: Fields }>>;

type Fields = Readonly<Record<string, unknown>>;

/** What of a call can be written into a graph. */
export const words = ["prompt", "width", "height", "seed", "n", "model", "image", "mask"] as const;

type Word = (typeof words)[number];

/** An input of a node. */
interface Place {
  readonly node: string;
  readonly input: string;
}

/** A graph, and where the words of a call go in it. */
export interface Workflow {
  readonly graph: Graph;
  readonly inputs: Readonly<Partial<Record<Word, readonly Place[]>>>;
  /** What each quality writes, and where. */
  readonly quality: Readonly<Record<string, readonly (readonly [Place, unknown])[]>>;
  /** Where options that callers may pass go. */
  readonly options: Readonly<Record<string, readonly Place[]>>;
  /** The node whose images are the answer; undefined: all that are kept. */
  readonly output: string | undefined;
}

const names = ["workflow", "inputs", "quality", "options", "output", "edit"];

/** Reads a workflow whose graph is at hand. Throws SettingsFault. */
export function workflowOf(settings: Fields): Workflow {
  const unknown = Object.keys(settings).find((name) => !names.includes(name) && !name.startsWith("x-"));
  if (unknown !== undefined) throw new SettingsFault(`unknown setting ${unknown}`);
  const { output } = settings;
  const graph = graphOf(settings.workflow);
  if (output !== undefined && graph[String(output)] === undefined) {
    throw new SettingsFault(`output: the workflow has no node ${output}`);
  }
  const inputs = fieldsOf(settings, "inputs");
  const odd = Object.keys(inputs).find((name) => !words.some((word) => word === name));
  if (odd !== undefined) throw new SettingsFault(`inputs.${odd} is none of ${words.join(", ")}`);
  const quality = Object.entries(fieldsOf(settings, "quality")).map(([name, values]) => {
    if (!isRecord(values)) throw new SettingsFault(`quality.${name} must say which inputs get which values`);
    const written = Object.entries(values).map(
      ([path, value]) => [placeOf(path, graph, `quality.${name}`), value] as const,
    );
    return [name, written] as const;
  });
  return {
    graph,
    inputs: placesOf(inputs, graph, "inputs"),
    quality: Object.fromEntries(quality),
    options: placesOf(fieldsOf(settings, "options"), graph, "options"),
    output: output === undefined ? undefined : String(output),
  };
}

function fieldsOf(settings: Fields, name: string): Fields {
  const fields = settings[name] ?? {};
  if (isRecord(fields)) return fields;
  throw new SettingsFault(`${name} must name inputs of nodes, such as 6.inputs.text`);
}

function graphOf(workflow: unknown): Graph {
  if (!isRecord(workflow))
    throw new SettingsFault("workflow is missing: a file beside this one, or the graph itself");
  if (Array.isArray(workflow.nodes)) {
    throw new SettingsFault("workflow is a saved one; export it for the API (Workflow, Export (API))");
  }
  const nodes = Object.entries(workflow);
  const odd = nodes.find(
    ([, node]) => !isRecord(node) || typeof node.class_type !== "string" || !isRecord(node.inputs),
  );
  if (odd !== undefined || nodes.length === 0) {
    throw new SettingsFault(`workflow: ${odd?.[0] ?? "it"} is no node with class_type and inputs`);
  }
  return workflow as Graph;
}

function placesOf(fields: Fields, graph: Graph, at: string): Record<string, readonly Place[]> {
  const places = Object.entries(fields).map(([name, paths]) => {
    const list: readonly unknown[] = Array.isArray(paths) ? paths : [paths];
    return [name, list.map((path) => placeOf(path, graph, `${at}.${name}`))] as const;
  });
  return Object.fromEntries(places);
}

/** `6.inputs.text`, which has to be in the graph. */
function placeOf(path: unknown, graph: Graph, at: string): Place {
  const [, node = "", input = ""] = /^(.+?)\.inputs\.(.+)$/.exec(String(path)) ?? [];
  if (input === "") throw new SettingsFault(`${at}: ${path} is no input of a node, such as 6.inputs.text`);
  if (graph[node] === undefined) throw new SettingsFault(`${at}: the workflow has no node ${node}`);
  if (!Object.hasOwn(graph[node].inputs, input)) {
    throw new SettingsFault(`${at}: node ${node} (${graph[node].class_type}) has no input ${input}`);
  }
  if (Array.isArray(graph[node].inputs[input])) {
    throw new SettingsFault(`${at}: ${path} is linked to another node, so nothing can be written there`);
  }
  return { node, input };
}

/** Files that were uploaded for a call, as LoadImage names them. */
export interface UploadedImages {
  readonly references: readonly string[];
  readonly mask: string | undefined;
}

/** Larger than any number that a widget of ComfyUI shows without loss. */
const seeds = 2 ** 48 - 1;

/**
 * The graph of one call. A seed always stands in it, and what saves gets a name of its own: ComfyUI answers what it has
 * made before from its cache, as a rule without images.
 */
export function graphFor(call: ImageCall, workflow: Workflow, images: UploadedImages, nonce: string): Graph {
  const graph = structuredClone(workflow.graph) as Record<string, { inputs: Record<string, unknown> }>;
  const write = ({ node, input }: Place, value: unknown) => {
    const inputs = graph[node]?.inputs;
    if (inputs !== undefined && value !== undefined) inputs[input] = value;
  };
  for (const { inputs } of Object.values(graph)) {
    if (typeof inputs.filename_prefix === "string") inputs.filename_prefix += `-${nonce}`;
  }
  for (const [name, places] of Object.entries(workflow.options)) {
    for (const place of places)
      write(place, sameKind(call.options[name], graph[place.node]?.inputs[place.input]));
  }
  for (const [place, value] of workflow.quality[call.quality] ?? []) write(place, value);
  const seed = call.seed === undefined ? randomInt(seeds) : Math.abs(call.seed) % seeds;
  const { width, height } = call.size ?? {};
  const { prompt, n, upstreamModel: model } = call;
  const values = { prompt, width, height, seed, n, model, mask: images.mask };
  for (const word of words) {
    if (word === "image") continue;
    for (const place of workflow.inputs[word] ?? []) write(place, values[word]);
  }
  for (const [index, place] of (workflow.inputs.image ?? []).entries()) {
    write(place, images.references[index] ?? images.references.at(-1));
  }
  return graph as Graph;
}

/** An option stands in for what is there only where it is of its type: nothing else, and no link, gets in. */
function sameKind(value: unknown, present: unknown): unknown {
  const isPlain = /^(string|number|boolean)$/.test(typeof value);
  return isPlain && typeof value === typeof present ? value : undefined;
}
