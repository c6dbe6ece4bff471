import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { type DoorBody, type Ports, restDoors, rpcDoors } from "./worst-bodies/doors.ts";
import type { Probe } from "./worst-bodies/target.ts";

const mebibyte = 1 << 20;
const { values } = parseArgs({
  options: { door: { type: "string" }, body: { type: "string" }, mib: { type: "string", default: "32" } },
});
const maxBytes = Number(values.mib) * mebibyte;
/** What no body may take of the loop at a stretch, and of memory with itself. */
const mostTurnMs = 50;
const mostGrownBytes = (bodyBytes: number) => 5 * bodyBytes + 2 * mebibyte;

interface Row extends Probe {
  readonly body: string;
  readonly bytes: number;
  readonly status: string;
}

async function measure(target: ChildProcess, { name, bytes, send }: DoorBody): Promise<Row> {
  const ask = async (message: string) => {
    target.send(message);
    const [answer] = (await once(target, "message")) as [Probe];
    return answer;
  };
  await ask("turns");
  const status = await send();
  const { longestTurnMs } = await ask("end");
  await ask("memory");
  await send();
  const { grownBytes } = await ask("end");
  return { longestTurnMs, grownBytes, body: name, bytes, status };
}

function tell(door: string, rows: readonly Row[]): void {
  const mib = (bytes: number) => (bytes / mebibyte).toFixed(1);
  for (const row of rows) {
    const isWithin = row.longestTurnMs <= mostTurnMs && row.grownBytes <= mostGrownBytes(row.bytes);
    const cells = [`${row.longestTurnMs.toFixed(1)} ms`, `${mib(row.grownBytes - row.bytes)} MiB`];
    console.log(
      `${isWithin ? " " : "!"} ${door} | ${row.body} | ${mib(row.bytes)} MiB | ${row.status} | ${cells.join(" | ")}`,
    );
  }
}

const target = fork(new URL("worst-bodies/target.ts", import.meta.url), {
  // A small young generation: garbage that V8 would leave lying is not what a body takes.
  execArgv: ["--expose-gc", "--max-semi-space-size=1"],
});
const [ports] = (await once(target, "message")) as [Ports];
const doors = [...(await restDoors(ports, maxBytes)), ...rpcDoors(ports, maxBytes)];
console.log("  door | body | size | status | longest turn | memory beyond the body");
for (const { name, bodies } of doors.filter((door) => door.name.includes(values.door ?? ""))) {
  const rows: Row[] = [];
  for await (const body of bodies()) {
    if (body.name.includes(values.body ?? "")) rows.push(await measure(target, body));
  }
  tell(
    name,
    rows.sort((a, b) => b.longestTurnMs - a.longestTurnMs),
  );
}
target.disconnect();
