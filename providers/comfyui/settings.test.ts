import { describe, expect, test } from "vitest";
import { loadExamples, readExample } from "../../test/support/own-gpu.ts";
import { SettingsFault } from "../declared-endpoint.ts";
import { comfyui } from "./index.ts";
import { readComfyuiSettings } from "./settings.ts";

const text = await readExample("comfyui", "text-to-image.json");
const workflow = JSON.parse(text) as Record<string, unknown>;
const inputs = {
  prompt: "6.inputs.text",
  seed: "3.inputs.seed",
  width: "5.inputs.width",
  height: ["5.inputs.height"],
};
const image = {
  sizes: { kind: "grid" },
  maxN: 1,
  qualities: [],
  maxReferences: 0,
  mask: false,
  streaming: true,
} as const;

async function faultOf(
  settings: object,
  offer: object = {},
  passthrough: readonly string[] = [],
): Promise<string> {
  const declared = {
    settings: { workflow, inputs, ...settings },
    passthrough,
    image: { ...image, ...offer },
  };
  const read = async (name: string) => (name === "graph.json" ? text : "no JSON");
  try {
    await readComfyuiSettings(declared, read);
    return "";
  } catch (thrown) {
    if (thrown instanceof SettingsFault) return thrown.message;
    throw thrown;
  }
}

describe("settings", () => {
  test.each([{}, { workflow: "graph.json" }, { output: 9 }, { quality: { low: { "3.inputs.steps": 5 } } }])(
    "that fit their workflow are taken: %j",
    async (settings) => {
      expect(await faultOf(settings)).toBe("");
    },
  );

  test("carry the graph of their file", async () => {
    const declared = { settings: { workflow: "graph.json", inputs }, passthrough: [], image };
    expect(await readComfyuiSettings(declared, async () => text)).toEqual({ workflow, inputs });
  });

  test.each<[string, object, object?, (readonly string[])?]>([
    ["unknown setting input", { input: {} }],
    ["workflow is missing: a file beside this one, or the graph itself", { workflow: null }],
    ["other.json is not JSON", { workflow: "other.json" }],
    [
      "workflow is a saved one; export it for the API (Workflow, Export (API))",
      { workflow: { nodes: [], links: [] } },
    ],
    ["workflow: 3 is no node with class_type and inputs", { workflow: { 3: { class_type: "KSampler" } } }],
    ["output: the workflow has no node 10", { output: "10" }],
    ["inputs must name inputs of nodes, such as 6.inputs.text", { inputs: ["6.inputs.text"] }],
    [
      "inputs.text is none of prompt, width, height, seed, n, model, image, mask",
      { inputs: { text: "6.inputs.text" } },
    ],
    ["inputs.prompt: 6.text is no input of a node, such as 6.inputs.text", { inputs: { prompt: "6.text" } }],
    ["inputs.prompt: the workflow has no node 66", { inputs: { prompt: "66.inputs.text" } }],
    ["inputs.prompt: node 6 (CLIPTextEncode) has no input texts", { inputs: { prompt: "6.inputs.texts" } }],
    ["inputs.prompt: 6.inputs.clip is linked to another node", { inputs: { prompt: "6.inputs.clip" } }],
    ["inputs.prompt is missing", { inputs: { ...inputs, prompt: undefined } }],
    ["inputs.seed is missing", { inputs: { prompt: inputs.prompt } }],
    ["inputs.n is missing", {}, { maxN: 2 }],
    ["inputs.width and inputs.height are missing", { inputs: { prompt: inputs.prompt, seed: inputs.seed } }],
    ["quality.low must say which inputs get which values", { quality: { low: 5 } }],
    ["quality.low: the workflow has no node 33", { quality: { low: { "33.inputs.steps": 5 } } }],
    ["quality.high is missing, which image.qualities lists", {}, { qualities: ["high"] }],
    ["options.cfg is missing, which passthrough lists", {}, {}, ["cfg"]],
    ["edit has a meaning with image.max_references only", { edit: {} }],
    ["edit is missing, which image.max_references asks for", {}, { maxReferences: 1 }],
    ["edit: inputs.image has to name as many inputs", { edit: { workflow, inputs } }, { maxReferences: 1 }],
  ])("that can't be meant are refused in one line: %s", async (fault, settings, offer, passthrough) => {
    const said = await faultOf(JSON.parse(JSON.stringify(settings)) as object, offer, passthrough);
    expect(said.startsWith(fault), said).toBe(true);
    expect(said).not.toContain("\n");
  });
});

test("the example that comes along is a catalogue file", async () => {
  const catalog = await loadExamples(comfyui, "comfyui.yaml", "comfyui");
  const [endpoint] = catalog.imageModel("own/sdxl-comfyui")?.endpoints ?? [];
  expect(endpoint?.settings.workflow).toEqual(workflow);
  expect(endpoint?.image).toMatchObject({ streaming: true, maxReferences: 1 });
});
