import { UsageAdminService } from "../../../gen/media/usage/v1/usage_admin_service_pb.ts";
import type { RebuiltDay } from "../../../gen/media/usage/v1/usage_pb.ts";
import { addDays, dayNumber } from "../../../services/usage/day.ts";
import type { Input, Noun } from "../command.ts";
import type { Cli } from "../connect.ts";
import { CommandFailure } from "../failure.ts";
import type { Output } from "../output.ts";
import { readDays } from "./books.ts";

const dayTimeoutMs = 900_000;

/** The roll-ups of what was used. */
export const activity: Noun = {
  name: "activity",
  summary: "the roll-ups of usage",
  verbs: [
    {
      name: "rebuild",
      summary: "compute roll-ups again from the usage records, and mend what differs",
      options: [
        { name: "from", value: "YYYY-MM-DD", help: "first UTC day" },
        { name: "to", value: "YYYY-MM-DD", help: "last UTC day; the first unless given" },
        { name: "dry-run", help: "only compare; exits 1 when something differs" },
      ],
      details: `By day and, for the last eight days, by hour, for each day of the span whose records are all there. What is not listed
for GET /generations is listed.`,
      run: rebuild,
    },
  ],
};

async function rebuild(input: Input, cli: Cli): Promise<Output> {
  const { from, to } = readDays(input, {});
  const dryRun = input.flag("dry-run");
  const client = await cli.client(UsageAdminService, "usage", dayTimeoutMs);
  const found: RebuiltDay[] = [];
  // One by one, so that each has its time.
  for (let at = 0; at <= dayNumber(to) - dayNumber(from); at++) {
    const date = addDays(from, at);
    const [day] = (await client.rebuildActivity({ fromDate: date, toDate: date, dryRun })).days;
    if (day === undefined) throw new CommandFailure("internal", `the usage service left out ${date}`);
    found.push(day);
  }
  return {
    lines: found.map((day) => describe(day, dryRun)),
    data: found.map((day) => ({ date: day.date, complete: day.complete, differing: differingOf(day) })),
    isWrong: dryRun && found.some((day) => differingOf(day) > 0),
  };
}

function differingOf({ differingCells, differingHourCells }: RebuiltDay): number {
  return differingCells + differingHourCells;
}

function describe(day: RebuiltDay, dryRun: boolean): string {
  if (!day.complete) return `${day.date}\tleft alone: records of it are pruned`;
  const differing = differingOf(day);
  if (differing === 0) return `${day.date}\tequal`;
  return `${day.date}\t${differing} ${dryRun ? "cells differ" : "cells mended"}`;
}
