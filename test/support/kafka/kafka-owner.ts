/**
 * A process that owns a Kafka broker until its stdin ends, however its parent ended; then it kills the broker and
 * removes its data. Its argument is KafkaOwnerOptions as JSON. It writes one line of JSON once the broker can be reached
 * (KafkaAddresses), or why it can't start and exits 1. Lines on stdin: `kill` ends the broker with SIGKILL, `start`
 * starts it again on the same data and ports; each is answered by a line.
 */
import { type ChildProcess, execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { javaProgram } from "../../../commands/fetch/broker-jars.ts";
import { freePorts } from "../../../commands/stack/free-ports.ts";
import { endKafka, formatKafka, launchKafka } from "../../../commands/stack/kafka-server.ts";
import type { KafkaAddresses, KafkaOwnerOptions } from "./kafka-broker.ts";
import { type KafkaPorts, kafkaProperties, kafkaUsers, keyStorePassword } from "./kafka-properties.ts";

const run = promisify(execFile);
const startAttempts = 3;
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
        if (line === "kill") await endKafka(running, "SIGKILL");
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
  await endKafka(broker, "SIGKILL");
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(code);
}

/** Free ports may be taken by another before the broker has them; then others are tried. */
async function startFirst(): Promise<{ ports: KafkaPorts; broker: ChildProcess }> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await somePorts();
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

async function somePorts(): Promise<KafkaPorts> {
  const [controller = 0, plain = 0, sasl, tls, saslTls] = await freePorts(secured ? 5 : 2);
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
  const scram = Object.entries(kafkaUsers).flatMap(([name, password]) =>
    ["SCRAM-SHA-256", "SCRAM-SHA-512"].flatMap((mechanism) => [
      "--add-scram",
      `${mechanism}=[name=${name},password=${password}]`,
    ]),
  );
  await formatKafka(jars, paths.properties, secured ? scram : []);
}

function launch({ plain: port }: KafkaPorts): Promise<ChildProcess> {
  return launchKafka({ jars, propertiesFile: paths.properties, logFile: paths.log, port });
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
