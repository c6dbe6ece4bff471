/**
 * `npm run build`: makes what production runs, in dist/ and console/dist/. `npm run build -- code` makes one part alone.
 */
import { parseArgs } from "node:util";
import { StartError } from "../lib/runtime/start-error.ts";
import { startFailure } from "../lib/service/process.ts";
import { buildCode } from "./build/code.ts";
import { buildConsole } from "./build/console.ts";
import { runCommand } from "./command-line.ts";

/** What can be made, in this order; each says in a line what it has made. */
const parts: Readonly<Record<string, () => Promise<string>>> = {
  code: () => buildCode(),
  console: async () => {
    buildConsole();
    return "console/dist";
  },
};

await runCommand(async () => {
  const { positionals } = parseArgs({ allowPositionals: true });
  const unknown = positionals.find((name) => !Object.hasOwn(parts, name));
  if (unknown !== undefined) throw new StartError(`no part "${unknown}"; there is ${Object.keys(parts)}`);
  for (const [name, build] of Object.entries(parts)) {
    if (positionals.length === 0 || positionals.includes(name)) console.log(`${name}: ${await build()}`);
  }
}, startFailure);
