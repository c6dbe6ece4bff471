/**
 * Checks the Dockerfile and the manifests, or those in the folder that `--manifests` names: renders every overlay, holds
 * it against strict schemas and policies, and with `--server` applies it to a real API server. Prints a line for each
 * check; exits 1 when one fails or when a tool is missing.
 */
import { fileURLToPath } from "node:url";
import { StartError } from "../lib/runtime/start-error.ts";
import { startFailure } from "../lib/service/process.ts";
import { readOptions, runCommand } from "./command-line.ts";
import { checkOnServer } from "./deploy/check-server.ts";
import { listOverlays, manifestsFolder, renderOverlay } from "./deploy/render.ts";
import { checkTools, kubernetesVersion, serverTools } from "./deploy/tool-list.ts";
import { missingTools, toolPath } from "./deploy/tools.ts";
import { runProgram } from "./fetch/kept-folder.ts";

const checkTimeoutMs = 120_000;
const dockerfile = fileURLToPath(new URL("../deploy/Dockerfile", import.meta.url));

/** What kube-score asks for that is answered otherwise. */
const answeredOtherwise = [
  // A tag names one release and a digest one image: nothing is gained by asking the registry at each start.
  "container-image-pull-policy",
  // Topology spread constraints do it.
  "deployment-has-host-podantiaffinity",
];

await runCommand(async () => {
  const values = readOptions({
    server: { type: "boolean", default: false },
    manifests: { type: "string", default: manifestsFolder },
  });
  needTools(values.server);
  const rendered = listOverlays(values.manifests).map((overlay) => ({
    name: overlay.name,
    text: renderOverlay(overlay),
  }));
  const failures = rendered.flatMap(({ name, text }) => [
    check(`${name}: schemas`, toolPath(checkTools.kubeconform), schemaArguments(), text),
    // What is for one machine has no use for replicas and closed networks.
    ...(name.startsWith("local")
      ? []
      : [check(`${name}: policies`, toolPath(checkTools.kubeScore), scoreArguments(), text)]),
  ]);
  failures.push(check("Dockerfile", toolPath(checkTools.hadolint), [dockerfile]));
  if (values.server) failures.push(!(await checkOnServer(rendered, values.manifests)));
  return failures.includes(true) ? 1 : 0;
}, startFailure);

function needTools(withServer: boolean): void {
  const tools = [...Object.values(checkTools), ...(withServer ? Object.values(serverTools) : [])];
  const missing = missingTools(tools).map(({ name, version }) => `${name} ${version}`);
  if (missing.length === 0) return;
  const command = `npm run deploy:fetch${withServer ? " -- --server" : ""}`;
  throw new StartError(`${missing.join(", ")} missing: run "${command}"`);
}

function schemaArguments(): string[] {
  const own = `${toolPath(checkTools.schemas)}/{{ .ResourceKind }}{{ .KindSuffix }}.json`;
  const custom = `${toolPath(checkTools.crds)}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json`;
  // Workers would each read every schema anew.
  return ["-strict", "-n", "1", "-schema-location", own, "-schema-location", custom, "-"];
}

function scoreArguments(): string[] {
  const [major, minor] = kubernetesVersion.split(".");
  const ignored = answeredOtherwise.flatMap((name) => ["--ignore-test", name]);
  // A limit of CPU slows down what is in time otherwise; requests share it out.
  const flags = ["--kubernetes-version", `v${major}.${minor}`, "--ignore-container-cpu-limit"];
  return ["score", ...flags, ...ignored, "--output-format", "ci", "-"];
}

/** Runs a check and says how it went; true when it failed. */
function check(what: string, program: string, args: readonly string[], input = ""): boolean {
  const { error, status, stdout, stderr } = runProgram(program, args, { input, timeoutMs: checkTimeoutMs });
  const failed = error !== undefined || status !== 0;
  console.log(`${failed ? "failed" : "ok"}: ${what}`);
  if (failed) {
    const lines = `${stdout}${stderr}`.split("\n");
    console.error(lines.filter((line) => !/^(\[(OK|SKIPPED)\]|$)/.test(line)).join("\n"));
  }
  return failed;
}
