import { join } from "node:path";
import { type ApiServer, withApiServer } from "./api-server.ts";
import { checkTools, crdDefinitions } from "./tool-list.ts";
import { toolPath } from "./tools.ts";

interface RenderedOverlay {
  readonly name: string;
  /** YAML. */
  readonly text: string;
}

const apply = ["apply", "--server-side", "--validate=strict", "--warnings-as-errors", "--filename=-"];

/**
 * Applies each overlay to a real API server as an operator would, in a namespace of its own that enforces Pod Security;
 * a warning counts as a refusal. Prints a line for each; true when all were taken. Throws StartError.
 */
export async function checkOnServer(
  overlays: readonly RenderedOverlay[],
  manifests: string,
): Promise<boolean> {
  return withApiServer(async (server) => {
    await applyDefinitions(server);
    const namespace = server.kubectl([
      "apply",
      "--server-side",
      `--filename=${join(manifests, "namespace.yaml")}`,
    ]);
    const results = [report("namespace", namespace.failure)];
    for (const { name, text } of overlays) {
      results.push(report(name, server.kubectl(apply, text).failure));
      // What another overlay makes goes by the same names, and no Job can be changed.
      server.kubectl(["delete", "--filename=-", "--ignore-not-found", "--wait=false"], text);
    }
    return !results.includes(false);
  });
}

async function applyDefinitions({ kubectl }: ApiServer): Promise<void> {
  const made = kubectl(["apply", "--server-side", `--filename=${crdDefinitions(toolPath(checkTools.crds))}`]);
  report("custom resource definitions", made.failure);
  kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);
}

function report(what: string, failure: string | undefined): boolean {
  console.log(`${failure === undefined ? "ok" : "failed"}: ${what}: API server`);
  if (failure !== undefined) console.error(failure.trimEnd());
  return failure === undefined;
}
