import type { Client } from "@connectrpc/connect";
import { UsageAdminService } from "../gen/media/usage/v1/usage_admin_service_pb.ts";
import type { RebuiltDay } from "../gen/media/usage/v1/usage_pb.ts";
import { createRemoteTransport, createRpcClient } from "../lib/rpc/client.ts";
import { httpUrlVar, readConfig } from "../lib/runtime/config.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { addDays, dayNumber, isDay } from "../services/usage/day.ts";
import { adminSpec, operatorToken, refused } from "./admin/client.ts";
import { readOptions, runCommand } from "./command-line.ts";

const usage = `usage: npm run rebuild-activity -- --from <YYYY-MM-DD> [--to <YYYY-MM-DD>] [--dry-run] [--operator <name>]

Computes the roll-ups of activity again from the usage records, by day and, for the last eight days, by hour, for each
UTC day of the span whose records are all there, and mends what differs; what is not listed is listed. --to is the same day unless given. With --dry-run it only compares, and exits 1 when it
found a difference. Environment: USAGE_URL (http://localhost:8081), ADMIN_KEY_FILE (DATA_DIR/keys/admin.jwk).`;

const options = {
  from: { type: "string" },
  to: { type: "string" },
  "dry-run": { type: "boolean", default: false },
  operator: { type: "string" },
  help: { type: "boolean", default: false },
} as const;

const dayTimeoutMs = 900_000;

await runCommand(() => {
  const asked = readOptions(options);
  return asked.help ? console.log(usage) : run(asked);
});

async function run(asked: ReturnType<typeof readOptions<typeof options>>): Promise<number> {
  const { from, to = from, operator, "dry-run": dryRun } = asked;
  if (from === undefined || to === undefined) throw new StartError("--from is required; --help tells more");
  const days = daysBetween(from, to);
  const config = readConfig({ ...adminSpec, USAGE_URL: httpUrlVar({ default: undefined }) });
  const url = config.USAGE_URL ?? `http://localhost:${config.RPC_PORT}`;
  const interceptors = [await operatorToken("usage", operator, config)];
  const transport = createRemoteTransport({ baseUrl: url, interceptors, defaultTimeoutMs: dayTimeoutMs });
  const client = createRpcClient(UsageAdminService, transport);
  let differing = 0;
  for (const date of days) {
    const day = await rebuildDay(client, date, dryRun, url);
    differing += day.differingCells + day.differingHourCells;
    console.log(describe(day, dryRun));
  }
  return dryRun && differing > 0 ? 1 : 0;
}

/** Every day of the span; they are asked for one by one, so that each answers by itself. */
function daysBetween(from: string, to: string): readonly string[] {
  if (!isDay(from) || !isDay(to)) throw new StartError("--from and --to take a date written YYYY-MM-DD");
  if (to < from) throw new StartError("--to lies before --from");
  return Array.from({ length: dayNumber(to) - dayNumber(from) + 1 }, (_, index) => addDays(from, index));
}

async function rebuildDay(
  client: Client<typeof UsageAdminService>,
  date: string,
  dryRun: boolean,
  url: string,
): Promise<RebuiltDay> {
  const asking = client.rebuildActivity({ fromDate: date, toDate: date, dryRun });
  const [day] = (await asking.catch(refused(`usage service at ${url}`))).days;
  if (day === undefined) throw new StartError(`the usage service at ${url} left out ${date}`);
  return day;
}

function describe(
  { date, complete, differingCells, differingHourCells }: RebuiltDay,
  dryRun: boolean,
): string {
  if (!complete) return `${date}\tleft alone: records of it are pruned`;
  const differing = differingCells + differingHourCells;
  if (differing === 0) return `${date}\tequal`;
  return `${date}\t${differing} ${dryRun ? "cells differ" : "cells mended"}`;
}
