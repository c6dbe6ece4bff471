import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StartError } from "../../lib/runtime/start-error.ts";
import { runProgram } from "../fetch/kept-folder.ts";
import { checkTools } from "./tool-list.ts";
import { toolPath } from "./tools.ts";

/** The folder of the Kubernetes manifests. */
export const manifestsFolder = fileURLToPath(new URL("../../deploy/kubernetes", import.meta.url));

const renderTimeoutMs = 60_000;

interface Overlay {
  /** Such as `production`, and `production/setup` for what runs before it. */
  readonly name: string;
  readonly folder: string;
}

/** Every overlay, what runs before one ahead of it. Throws StartError when the folder has none. */
export function listOverlays(folder: string = manifestsFolder): Overlay[] {
  const overlays = join(folder, "overlays");
  if (!existsSync(overlays)) throw new StartError(`${folder} has no folder "overlays"`);
  const names = readdirSync(overlays, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return names
    .flatMap(({ name }) => [`${name}/setup`, name])
    .map((name) => ({ name, folder: join(overlays, name) }))
    .filter((overlay) => existsSync(join(overlay.folder, "kustomization.yaml")));
}

/** What an overlay comes to, as YAML. Throws StartError when it can't be rendered. */
export function renderOverlay({ name, folder }: Overlay): string {
  const options = { timeoutMs: renderTimeoutMs };
  const { error, status, stdout, stderr } = runProgram(
    toolPath(checkTools.kubectl),
    ["kustomize", folder],
    options,
  );
  if (error !== undefined || status !== 0) throw new StartError(`${name} can't be rendered:\n${stderr}`);
  return stdout;
}
