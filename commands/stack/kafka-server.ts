/** A Kafka broker of one node (KRaft, Apache Kafka 4), out of the archives that `npm run broker:fetch` fetches. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { delimiter, isAbsolute, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { brokerJarsFolder, hasBrokerJars, javaProgram } from "../fetch/broker-jars.ts";

/** Where clients reach a broker in one of the ways that it offers. */
export interface KafkaListener {
  readonly port: number;
  /** The port that clients are told to connect to, when it is another one. */
  readonly advertisedPort?: number | undefined;
  readonly protocol: "PLAINTEXT" | "SASL_PLAINTEXT" | "SSL" | "SASL_SSL";
}

interface KafkaServerSettings {
  readonly dataDir: string;
  readonly controllerPort: number;
  /** By name; brokers would reach each other by PLAIN. */
  readonly listeners: Readonly<Record<"PLAIN" | (string & {}), KafkaListener>>;
  /** Further properties. */
  readonly properties?: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const startTimeoutMs = 60_000;
const javaOptions = "-Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1".split(" ");

const base = {
  "process.roles": "broker,controller",
  "node.id": "1",
  "controller.listener.names": "CONTROLLER",
  "inter.broker.listener.name": "PLAIN",
  "auto.create.topics.enable": "false",
  "offsets.topic.replication.factor": "1",
  "offsets.topic.num.partitions": "3",
  "transaction.state.log.replication.factor": "1",
  "transaction.state.log.min.isr": "1",
  "transaction.state.log.num.partitions": "3",
  "group.initial.rebalance.delay.ms": "0",
  "group.min.session.timeout.ms": "1000",
  "log.cleaner.dedupe.buffer.size": "16777216",
  "log.segment.bytes": "16777216",
  "num.network.threads": "2",
  "num.io.threads": "4",
  "broker.session.timeout.ms": "2000",
  "broker.heartbeat.interval.ms": "500",
};

/** Why no broker can run here, in one line; undefined when one can. */
export function kafkaUnavailable(): string | undefined {
  if (!hasBrokerJars(brokerJarsFolder())) return "no Kafka broker: run npm run broker:fetch";
  const folders = (process.env.PATH ?? "").split(delimiter);
  const hasJava = isAbsolute(javaProgram())
    ? existsSync(javaProgram())
    : folders.some((folder) => existsSync(join(folder, javaProgram())));
  return hasJava ? undefined : "no Kafka broker: Java is missing";
}

/** The configuration file of a broker. */
export function kafkaServerProperties(settings: KafkaServerSettings): string {
  const { dataDir, controllerPort } = settings;
  const listeners = Object.entries(settings.listeners);
  const controller = `localhost:${controllerPort}`;
  const properties = {
    ...base,
    "controller.quorum.voters": `1@${controller}`,
    listeners: [
      ...listeners.map(([name, { port }]) => `${name}://localhost:${port}`),
      `CONTROLLER://${controller}`,
    ].join(","),
    "advertised.listeners": listeners
      .map(([name, { port, advertisedPort = port }]) => `${name}://localhost:${advertisedPort}`)
      .join(","),
    "listener.security.protocol.map": [
      "CONTROLLER:PLAINTEXT",
      ...listeners.map(([name, { protocol }]) => `${name}:${protocol}`),
    ].join(","),
    "log.dirs": dataDir,
    ...settings.properties,
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** Prepares the empty data folder that a configuration file names; `words` are further ones for Kafka's storage tool. */
export async function formatKafka(
  jars: string,
  propertiesFile: string,
  words: readonly string[] = [],
): Promise<void> {
  const clusterId = randomBytes(16).toString("base64url").replace(/^-/, "A");
  const command = ["format", "-t", clusterId, "-c", propertiesFile, ...words];
  await run(javaProgram(), [...javaWords(jars), "kafka.tools.StorageTool", ...command]);
}

interface KafkaLaunch {
  readonly jars: string;
  readonly propertiesFile: string;
  /** What the broker says is added to it. */
  readonly logFile: string;
  /** Of the listener PLAIN. */
  readonly port: number;
  /** Out of reach of the signals that a terminal sends to this process and its children. */
  readonly detached?: boolean;
}

/** Starts the broker; resolves when it can be reached. Throws with its last words when it can't start. */
export async function launchKafka(launch: KafkaLaunch): Promise<ChildProcess> {
  const { jars, propertiesFile, logFile, port, detached = false } = launch;
  const log = openSync(logFile, "a");
  const broker = spawn(javaProgram(), [...javaWords(jars), "kafka.Kafka", propertiesFile], {
    stdio: ["ignore", log, log],
    detached,
  });
  closeSync(log);
  const deadline = performance.now() + startTimeoutMs;
  while (!(await isOpen(port))) {
    if (broker.exitCode !== null || performance.now() > deadline) {
      await endKafka(broker, "SIGKILL");
      throw new Error(`the broker did not start:\n${(await readFile(logFile, "utf8")).slice(-2000)}`);
    }
    await delay(50);
  }
  return broker;
}

/** Ends a broker unless it has ended, and waits for that. */
export async function endKafka(broker: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (broker.exitCode !== null || broker.signalCode !== null) return;
  broker.kill(signal);
  await once(broker, "exit");
}

function javaWords(jars: string): string[] {
  return [...javaOptions, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", join(jars, "*")];
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "localhost");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
