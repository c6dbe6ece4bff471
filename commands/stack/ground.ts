/** What a stack stands on: PostgreSQL, Kafka and Redis on this machine, where the environment names no others. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../lib/runtime/log.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import type { Teardown } from "../../lib/service/teardown.ts";
import { startEmbeddedPostgres } from "../../standalone/embedded-postgres.ts";
import { brokerJarsFolder } from "../fetch/broker-jars.ts";
import { freePort, freePorts } from "./free-ports.ts";
import {
  endKafka,
  formatKafka,
  kafkaServerProperties,
  kafkaUnavailable,
  launchKafka,
} from "./kafka-server.ts";
import type { KeptProcesses } from "./kept-processes.ts";
import { redisArguments, redisIsInstalled, redisProgram } from "./redis-process.ts";

/** How each part of the ground is started. */
export interface GroundOptions {
  readonly dataDir: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly kept: KeptProcesses;
  /** Gets the end of what was started. */
  readonly teardown: Teardown;
  /** Called when a part has ended by itself. */
  onFailure(line: string): void;
}

const redisStartTimeoutMs = 10_000;

/** Starts the embedded PostgreSQL on the data folder and returns its URL, a secret. Throws StartError. */
export async function startDatabase(options: GroundOptions): Promise<string> {
  const { dataDir, log, signal, teardown, onFailure } = options;
  const postgres = await startEmbeddedPostgres({ dataDir, log, signal });
  teardown.add(() => postgres.stop());
  postgres.exited.then((error) => onFailure(error.message));
  return postgres.url;
}

/** Starts a Kafka broker on the data folder and returns where it is, as `host:port`. Throws StartError. */
export async function startKafka(options: GroundOptions): Promise<string> {
  const reason = kafkaUnavailable();
  if (reason !== undefined) throw new StartError(`${reason}, or set KAFKA_BROKERS`);
  const folder = join(options.dataDir, "kafka");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const [port = 0, controllerPort = 0] = await freePorts(2);
  const dataDir = join(folder, "data");
  const propertiesFile = join(folder, "server.properties");
  const listeners = { PLAIN: { port, protocol: "PLAINTEXT" } } as const;
  await writeFile(propertiesFile, kafkaServerProperties({ dataDir, controllerPort, listeners }));
  const jars = brokerJarsFolder();
  if (!existsSync(join(dataDir, "meta.properties"))) await formatKafka(jars, propertiesFile);
  const logFile = join(folder, "broker.log");
  const broker = await launchKafka({ jars, propertiesFile, logFile, port, detached: true });
  const ended = once(broker, "exit");
  options.kept.keep(broker.pid ?? 0, ended);
  let isStopping = false;
  options.teardown.add(() => {
    isStopping = true;
    return endKafka(broker, "SIGTERM");
  });
  void ended.then(() => {
    if (!isStopping) options.onFailure(`Kafka ended by itself; ${logFile} says why`);
  });
  return `localhost:${port}`;
}

/** Starts a Redis that keeps nothing on disk and returns its URL; undefined where none is installed. */
export async function startRedis(options: GroundOptions): Promise<string | undefined> {
  if (!redisIsInstalled()) return undefined;
  const port = await freePort();
  const server = spawn(redisProgram, redisArguments(port), { stdio: "ignore", detached: true });
  const ended = once(server, "exit");
  options.kept.keep(server.pid ?? 0, ended);
  let isStopping = false;
  options.teardown.add(async () => {
    isStopping = true;
    server.kill("SIGTERM");
    await ended;
  });
  void ended.then(() => {
    if (!isStopping) options.onFailure("Redis ended by itself");
  });
  await untilOpen(port);
  return `redis://127.0.0.1:${port}`;
}

async function untilOpen(port: number): Promise<void> {
  const deadline = performance.now() + redisStartTimeoutMs;
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch (thrown) {
      if (performance.now() > deadline) throw new StartError("Redis did not start", { cause: thrown });
    } finally {
      socket.destroy();
    }
    await delay(20);
  }
}
