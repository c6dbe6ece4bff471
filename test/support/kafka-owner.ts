/**
 * A process that owns a Kafka broker until its stdin ends, however its parent ended; then it kills the broker and
 * removes its data. Its argument is KafkaOwnerOptions as JSON. It writes one line of JSON once the broker can be reached
 * (KafkaAddresses), or why it can't start and exits 1. Lines on stdin: `kill` ends the broker with SIGKILL, `start`
 * starts it again on the same data and ports; each is answered by a line.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { javaProgram } from "../../commands/broker-jars.ts";
import type { KafkaAddresses, KafkaOwnerOptions } from "./kafka-broker.ts";
import { type KafkaPorts, kafkaProperties, kafkaUsers, keyStorePassword } from "./kafka-properties.ts";

const run = promisify(execFile);
const startTimeoutMs = 60_000;
const startAttempts = 3;
const javaOptions = "-Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1".split(" ");
const { jars, secured, advertisedPort } = JSON.parse(process.argv[2] ?? "{}") as KafkaOwnerOptions;

const folder = await mkdtemp(join(tmpdir(), "media-gateway-kafka-"));
const paths = {
  data: join(folder, "data"),
  properties: join(folder, "server.properties"),
  log: join(folder, "broker.log"),
  keyStore: join(folder, "broker.p12"),
  certificate: join(folder, "broker.pem"),
};

// A parent that is gone reads nothing any more; the end of stdin says so.
process.stdout.on("error", () => undefined);

try {
  const { ports, broker } = await startFirst();
  let running = broker;
  answer(addressesOf(ports));
  let turn: Promise<void> = Promise.resolve();
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      turn = turn.then(async () => {
        if (line === "kill") await end(running);
        else running = await startAgain(ports);
        answer({});
      });
      turn.catch(fail);
    })
    .on("close", () => {
      void turn.finally(() => finish(running, 0));
    });
} catch (thrown) {
  await fail(thrown);
}

function answer(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

async function fail(thrown: unknown): Promise<void> {
  process.stderr.write(`${thrown instanceof Error ? thrown.message : thrown}\n`);
  await rm(folder, { recursive: true, force: true });
  process.exit(1);
}

async function finish(broker: ChildProcess, code: number): Promise<void> {
  await end(broker);
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code);
}

async function end(broker: ChildProcess): Promise<void> {
  if (broker.exitCode !== null || broker.signalCode !== null) return;
  broker.kill("SIGKILL");
  await once(broker, "exit");
}

/** Free ports may be taken by another before the broker has them; then others are tried. */
async function startFirst(): Promise<{ ports: KafkaPorts; broker: ChildProcess }> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await freePorts();
    const keyStore = secured ? paths.keyStore : undefined;
    const properties = kafkaProperties({ dataDir: paths.data, ports, keyStore, advertisedPort });
    await writeFile(paths.properties, properties);
    if (attempt === 1) await Promise.all([format(), secured ? makeCertificate() : undefined]);
    try {
      return { ports, broker: await launch(ports) };
    } catch (thrown) {
      if (attempt === startAttempts) throw thrown;
    }
  }
}

async function startAgain(ports: KafkaPorts): Promise<ChildProcess> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(ports);
    } catch (thrown) {
      if (attempt === startAttempts) throw thrown;
    }
  }
}

async function freePorts(): Promise<KafkaPorts> {
  const servers = Array.from({ length: secured ? 5 : 2 }, () => createServer().listen(0, "localhost"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const [controller = 0, plain = 0, sasl, tls, saslTls] = servers.map(
    (server) => (server.address() as AddressInfo).port,
  );
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  if (sasl === undefined || tls === undefined || saslTls === undefined) return { controller, plain };
  return { controller, plain, sasl, tls, saslTls };
}

function addressesOf(ports: KafkaPorts): KafkaAddresses {
  const { plain, sasl = 0, tls = 0, saslTls = 0 } = ports;
  const address = (port: number) => [`localhost:${port}`];
  return {
    brokers: address(plain),
    ...(secured
      ? {
          secured: {
            sasl: address(sasl),
            tls: address(tls),
            saslTls: address(saslTls),
            certificateFile: paths.certificate,
          },
        }
      : {}),
  };
}

async function format(): Promise<void> {
  const clusterId = randomBytes(16).toString("base64url").replace(/^-/, "A");
  const scram = Object.entries(kafkaUsers).flatMap(([name, password]) =>
    ["SCRAM-SHA-256", "SCRAM-SHA-512"].flatMap((mechanism) => [
      "--add-scram",
      `${mechanism}=[name=${name},password=${password}]`,
    ]),
  );
  const words = ["format", "-t", clusterId, "-c", paths.properties, ...(secured ? scram : [])];
  await run(javaProgram(), [...javaWords(), "kafka.tools.StorageTool", ...words]);
}

function javaWords(): string[] {
  return [...javaOptions, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", join(jars, "*")];
}

/** Starts the broker and waits until it can be reached. */
async function launch(ports: KafkaPorts): Promise<ChildProcess> {
  const log = openSync(paths.log, "a");
  const broker = spawn(javaProgram(), [...javaWords(), "kafka.Kafka", paths.properties], {
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const deadline = performance.now() + startTimeoutMs;
  while (!(await isOpen(ports.plain))) {
    if (broker.exitCode !== null || performance.now() > deadline) {
      await end(broker);
      throw new Error(`the broker did not start:\n${(await readFile(paths.log, "utf8")).slice(-2000)}`);
    }
    await delay(50);
  }
  return broker;
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

/** A key with a certificate of its own for `localhost`. */
async function makeCertificate(): Promise<void> {
  const keytool = javaProgram().replace(/java$/, "keytool");
  const store = ["-keystore", paths.keyStore, "-storepass", keyStorePassword, "-alias", "broker"];
  const subject = ["-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1"];
  const key = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "30", "-storetype", "PKCS12"];
  await run(keytool, ["-genkeypair", ...store, ...subject, ...key]);
  await run(keytool, ["-exportcert", "-rfc", ...store, "-file", paths.certificate]);
}
