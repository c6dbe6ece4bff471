/**
 * Settings of an endpoint:
 *
 * - `workflow`: the exported graph, by the name of a file beside the catalogue file or as it stands.
 * - `inputs`: where the words of a call go in it (workflow.ts); `prompt` and `seed` have to be there.
 * - `quality`: what low, medium and high write where; `options`: where the parameters of `passthrough` go.
 * - `output`: the node whose images are the answer, where it is not all that save.
 * - `edit`: the same again for calls with references.
 */
import { type DeclaredEndpoint, SettingsFault } from "../declared-endpoint.ts";
import { isRecord } from "../upstream/failure.ts";
import { type Workflow, workflowOf } from "./workflow.ts";

type Fields = Readonly<Record<string, unknown>>;
type Offer = NonNullable<DeclaredEndpoint["image"]>;

/** Settings with their graphs in them, checked. Throws SettingsFault. */
export async function readComfyuiSettings(
  { settings, passthrough, image }: DeclaredEndpoint,
  readFile: (name: string) => Promise<string>,
): Promise<Fields> {
  if (image === undefined) throw new SettingsFault("only images are drawn here");
  const read = await withGraph(settings, readFile);
  const { edit } = settings;
  const draws = workflowOf(read);
  checkWorkflow(draws, image, passthrough);
  if (image.maxReferences === 0) {
    if (edit !== undefined) throw new SettingsFault("edit has a meaning with image.max_references only");
    return read;
  }
  if (!isRecord(edit)) throw new SettingsFault("edit is missing, which image.max_references asks for");
  const readEdit = await withGraph(edit, readFile);
  try {
    const edits = workflowOf(readEdit);
    checkWorkflow(edits, image, passthrough);
    checkReferences(edits, image);
  } catch (thrown) {
    throw thrown instanceof SettingsFault ? new SettingsFault(`edit: ${thrown.message}`) : thrown;
  }
  return { ...read, edit: readEdit };
}

async function withGraph(settings: Fields, readFile: (name: string) => Promise<string>): Promise<Fields> {
  const { workflow } = settings;
  if (typeof workflow !== "string") return settings;
  const text = await readFile(workflow);
  try {
    return { ...settings, workflow: JSON.parse(text) as unknown };
  } catch {
    throw new SettingsFault(`${workflow} is not JSON`);
  }
}

function checkWorkflow(
  { inputs, quality, options }: Workflow,
  image: Offer,
  passthrough: readonly string[],
): void {
  if (inputs.prompt === undefined) throw new SettingsFault("inputs.prompt is missing");
  if (inputs.seed === undefined) {
    throw new SettingsFault(
      "inputs.seed is missing: without a new one ComfyUI answers from its cache, without images",
    );
  }
  if (image.maxN > 1 && inputs.n === undefined)
    throw new SettingsFault("inputs.n is missing, with image.max_n above 1");
  const isOneSize = image.sizes.kind === "list" && image.sizes.sizes.length === 1;
  if (!isOneSize && (inputs.width === undefined || inputs.height === undefined)) {
    throw new SettingsFault(
      "inputs.width and inputs.height are missing: without them there is one size to list",
    );
  }
  const missing = image.qualities.find((name) => quality[name] === undefined);
  if (missing !== undefined)
    throw new SettingsFault(`quality.${missing} is missing, which image.qualities lists`);
  const closed = passthrough.find((name) => options[name] === undefined);
  if (closed !== undefined) throw new SettingsFault(`options.${closed} is missing, which passthrough lists`);
}

function checkReferences({ inputs }: Workflow, { maxReferences, mask }: Offer): void {
  if (inputs.image?.length !== maxReferences) {
    throw new SettingsFault(
      `inputs.image has to name as many inputs as image.max_references: ${maxReferences}`,
    );
  }
  if (mask && inputs.mask === undefined)
    throw new SettingsFault("inputs.mask is missing, which image.mask asks for");
}
