/**
 * Fetches what `deploy-check` needs into a cache outside of the repository, once; with `--server` what `--server` needs
 * there, too, and with `--render` only what renders manifests. Needs npm, Python with pip, and Go (rendering: npm and
 * Python); exits 1 with one line when something is missing.
 */
import { startFailure } from "../lib/service/process.ts";
import { readOptions, runCommand } from "./command-line.ts";
import { checkTools, serverTools } from "./deploy/tool-list.ts";
import { deployToolsFolder, fetchTool, missingTools } from "./deploy/tools.ts";

await runCommand(() => {
  const flag = { type: "boolean", default: false } as const;
  const values = readOptions({ server: flag, render: flag });
  const all = [...Object.values(checkTools), ...(values.server ? Object.values(serverTools) : [])];
  const tools = values.render ? [checkTools.kubectl] : all;
  const missing = missingTools(tools);
  for (const tool of missing) {
    console.log(`fetching ${tool.name} ${tool.version}`);
    fetchTool(tool, tools);
  }
  console.log(`all is in ${deployToolsFolder()}`);
}, startFailure);
