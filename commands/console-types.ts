/**
 * Makes the types by which the console knows the interface: from the document that the gateway makes of its routes,
 * without any of them running. openapi-typescript needs an older TypeScript than ours, which it has to itself.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { apiRoutes } from "../gateway/app.ts";
import { createGatewayClients } from "../gateway/clients.ts";
import { gatewaySettings, readGatewayConfig } from "../gateway/config.ts";
import { describeRoutes } from "../gateway/docs/openapi-route.ts";
import { systemClock } from "../lib/runtime/clock.ts";
import { silentLog } from "../lib/runtime/log.ts";

const consoleRoot = join(import.meta.dirname, "..", "console");

/** Where they lie. */
export const consoleTypesFile = join(consoleRoot, "gen", "openapi.ts");

/** The text of that file, as it is to be now. */
export async function makeConsoleTypes(): Promise<string> {
  const settings = gatewaySettings(readGatewayConfig({ SERVICE_KEY_FILE: "unused" }));
  const nowhere = "http://localhost:1";
  const urls = { account: nowhere, speech: nowhere, image: nowhere, usage: nowhere, destination: nowhere };
  const clients = createGatewayClients(urls, { sign: async () => "" }, settings);
  const routes = apiRoutes({ ...clients, settings, log: silentLog, clock: systemClock });
  const models = { speech: { model: "author/model", voice: "a-voice" }, image: { model: "author/model" } };
  const document = describeRoutes(routes, settings, models);
  const folder = await mkdtemp(join(tmpdir(), "console-types-"));
  try {
    const [source, target] = [join(folder, "openapi.json"), join(folder, "openapi.ts")];
    await writeFile(source, JSON.stringify(document));
    execFileSync(process.execPath, [generator(), source, "--output", target], { stdio: "pipe" });
    return await readFile(target, "utf8");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function generator(): string {
  const { resolve } = createRequire(join(consoleRoot, "package.json"));
  return join(resolve("openapi-typescript/package.json"), "..", "bin", "cli.js");
}

if (import.meta.main) await writeFile(consoleTypesFile, await makeConsoleTypes());
