/**
 * `npm run stack`: every service in processes of its own on this machine, with PostgreSQL, Kafka and Redis, until
 * SIGINT or SIGTERM; a second one ends everything at once. SIGUSR2 restarts each process in turn. A process that dies
 * is started again; when PostgreSQL, Kafka or Redis ends by itself, all of it ends with 1 and the reason.
 */
import { createWriteStream, type WriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createLog } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { type RunningProcess, runProcess } from "../lib/service/process.ts";
import { unknownKeys } from "../services/account/accounts/bootstrap.ts";
import { keysMade, linesToPaste, links } from "../standalone/greeting.ts";
import { defaultPorts, type ProcessName, processNames } from "./stack/processes.ts";
import { type Stack, startStack } from "./stack/start.ts";

const usage = `usage: npm run stack [-- <options>]

  --replicas <n>       processes of each service; 1 unless given
  --data-dir <folder>  database, topics, keys and logs; .data/stack unless given
  --port <n>           of the REST interface; 8080 unless given
  --free-ports         lets the system choose every port

DATABASE_URL, KAFKA_BROKERS and REDIS_URL name what need not be started here. Every other variable of the environment,
such as OPENAI_API_KEY, goes on to the processes.`;

const maxReplicas = 10;

if (process.argv.includes("--help")) console.log(usage);
else await runProcess(start);

async function start(signal: AbortSignal): Promise<RunningProcess> {
  const { replicas, dataDir, ports } = readOptions();
  const logs = await openLogs(join(dataDir, "logs"));
  const log = createLog({
    name: "stack",
    level: "info",
    destination: { write: (line) => logs.write("stack", line.trimEnd()) },
  });
  const env = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
  const onLine = (name: string, line: string) => logs.write(name, line);
  const onNote = (note: string) => console.log(note);
  console.log(`starting ${replicas === 1 ? "one process" : `${replicas} processes`} of each service …`);
  const stack = await startStack({ dataDir, replicas, ports, env, log, signal, onLine, onNote });
  console.log(greeting(stack, env, logs.folder));
  void stack.failed.then(async (line) => {
    console.error(`error: ${line}; stopping`);
    await stack.stop();
    process.exit(1);
  });
  process.on("SIGUSR2", () => void restartAll(stack));
  return {
    log,
    stop() {
      console.log("stopping; once more to end at once");
      return stack.stop();
    },
  };
}

function readOptions() {
  const { values } = parseWords();
  const replicas = wholeNumber("--replicas", values.replicas ?? "1", 1, maxReplicas);
  const port = wholeNumber("--port", values.port ?? String(defaultPorts.gateway), 0, 65_535);
  const chosen = values["free-ports"] ? processNames.map((service) => [service, 0]) : [];
  const ports: Record<ProcessName, number> = {
    ...defaultPorts,
    ...Object.fromEntries(chosen),
    ...(values.port === undefined && values["free-ports"] ? {} : { gateway: port }),
  };
  return { replicas, ports, dataDir: resolve(values["data-dir"] ?? ".data/stack") };
}

function parseWords() {
  try {
    return parseArgs({
      options: {
        replicas: { type: "string" },
        "data-dir": { type: "string" },
        port: { type: "string" },
        "free-ports": { type: "boolean", default: false },
      },
    });
  } catch (thrown) {
    throw new StartError(thrown instanceof Error ? thrown.message : "malformed options");
  }
}

function wholeNumber(name: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new StartError(`${name} must be a whole number from ${min} to ${max}`);
}

/** A file for each process, which begins anew with each start of the stack. */
async function openLogs(folder: string) {
  await mkdir(folder, { recursive: true });
  const files = new Map<string, WriteStream>();
  return {
    folder,
    write(name: string, line: string) {
      const file = files.get(name) ?? createWriteStream(join(folder, `${name}.log`));
      files.set(name, file);
      file.write(`${line}\n`);
    },
  };
}

function greeting(
  { urls, firstAccount, replicas }: Stack,
  env: Readonly<Record<string, string>>,
  logs: string,
): string {
  const lines = processNames.map((service) => {
    const pids = replicas.all.filter((replica) => replica.service === service).map(({ child }) => child.pid);
    return `  ${service.padEnd(12)}${urls[service].padEnd(24)}processes ${pids.join(", ")}`;
  });
  const given = {
    inferenceKey: env.BOOTSTRAP_INFERENCE_KEY,
    managementKey: env.BOOTSTRAP_MANAGEMENT_KEY,
  };
  const unknown = firstAccount && unknownKeys(firstAccount, given);
  const keys =
    unknown === undefined
      ? ["Keys were shown on the first start."]
      : [keysMade(unknown), "", linesToPaste(urls.gateway, unknown)];
  const [first, ...others] = [`Media Gateway serves ${urls.gateway}/api/v1.`, links(urls.gateway), ...lines];
  return ["", first, ...others, "", ...keys, "", `Logs are in ${logs}.`, ""].join("\n");
}

async function restartAll({ replicas, stop }: Stack): Promise<void> {
  try {
    for (const { name } of replicas.all)
      console.log(`${name} restarted (exit code ${await replicas.restart(name)})`);
  } catch (thrown) {
    console.error(`error: ${thrown instanceof Error ? thrown.message : thrown}; stopping`);
    await stop();
    process.exit(1);
  }
}
