/**
 * What processes cost while nobody asks for anything: CPU and wake-ups a second of each process of the stack, and of
 * standalone with its PostgreSQL. `--seconds` (40) is how long each is watched, `--settle` (40) how long it rests
 * before; `standalone` or `stack` watches one of them alone. Linux only.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startStack } from "../commands/stack/start.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { removeDataDirectory, temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";
import { cpuMsOf, descendantsOf, programOf, treeCpuMsOf, wakeUpsOf } from "./process-usage.ts";
import { startStandalone } from "./targets.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "40" }, settle: { type: "string", default: "40" } },
});
const watchMs = Number(values.seconds) * 1000;
const settleMs = Number(values.settle) * 1000;
/** The discard port, where nobody listens. */
const noUpstream = "http://127.0.0.1:9";

/** The processes that are watched, by name; those of PostgreSQL with all that it has started. */
type Watched = Readonly<Record<string, number | undefined>>;

const database = "PostgreSQL";

const wanted = positionals.length === 0 ? ["standalone", "stack"] : positionals;

if (wanted.includes("standalone")) await watchStandalone();
if (wanted.includes("stack")) await watchProcesses();

async function watchStandalone(): Promise<void> {
  const standalone = await startStandalone(noUpstream);
  try {
    const pid = standalone.processes.standalone ?? 0;
    await printIdle("standalone", { standalone: pid, [database]: startedBy(pid, "postgres") });
  } finally {
    await standalone.stop();
  }
}

async function watchProcesses(): Promise<void> {
  const dataDir = await temporaryDirectory();
  const ports = { account: 0, usage: 0, destination: 0, speech: 0, image: 0, gateway: 0 };
  const stack = await startStack({
    dataDir,
    replicas: 1,
    ports,
    env: {},
    log: silentLog,
    signal: new AbortController().signal,
    onLine: () => undefined,
    onNote: (note) => console.log(note),
  });
  try {
    await printIdle("stack", {
      ...Object.fromEntries(stack.replicas.all.map(({ service, child }) => [service, child.pid])),
      [database]: startedBy(process.pid, "postgres"),
      Kafka: startedBy(process.pid, "java"),
      Redis: startedBy(process.pid, "redis-server"),
    });
  } finally {
    await stack.stop();
    await removeDataDirectory(dataDir);
  }
}

/** The first process of a program among those that a process has started. */
function startedBy(pid: number, program: string): number | undefined {
  return descendantsOf(pid).find((child) => programOf(child) === program);
}

async function printIdle(what: string, watched: Watched): Promise<void> {
  await delay(settleMs);
  const beganMs = performance.now();
  const before = read(watched);
  await delay(watchMs);
  const seconds = (performance.now() - beganMs) / 1000;
  console.log(`\n${what.padEnd(14)}${"CPU ms/s".padStart(10)}${"wake-ups/s".padStart(12)}`);
  read(watched).forEach(({ name, cpuMs, wakeUps }, index) => {
    const first = before[index];
    const cpu = (cpuMs - (first?.cpuMs ?? 0)) / seconds;
    const woken = [...wakeUps].reduce(
      (sum, [thread, count]) => sum + count - (first?.wakeUps.get(thread) ?? 0),
      0,
    );
    console.log(
      `${name.padEnd(14)}${cpu.toFixed(1).padStart(10)}${(woken / seconds).toFixed(1).padStart(12)}`,
    );
  });
}

function read(watched: Watched) {
  return Object.entries(watched).flatMap(([name, pid]) => {
    if (pid === undefined) return [];
    const isTree = name === database;
    const cpuMs = isTree ? treeCpuMsOf(pid) : cpuMsOf([pid]);
    return { name, cpuMs, wakeUps: wakeUpsOf(isTree ? [pid, ...descendantsOf(pid)] : [pid]) };
  });
}
