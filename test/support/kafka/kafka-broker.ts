import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { brokerJarsFolder } from "../../../commands/fetch/broker-jars.ts";

/** Where a broker listens, each `host:port`. */
export interface KafkaAddresses {
  /** Plain, without a name: everything is allowed. */
  readonly brokers: readonly string[];
  /** Only of a secured broker. Names and passwords are `kafkaUsers`, by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. */
  readonly secured?: {
    readonly sasl: readonly string[];
    readonly tls: readonly string[];
    readonly saslTls: readonly string[];
    /** PEM; the certificate signs itself. */
    readonly certificateFile: string;
  };
}

/** A broker of a test's own. */
export interface KafkaBroker extends KafkaAddresses {
  /** SIGKILL; resolves once the broker is gone. */
  kill(): Promise<void>;
  /** Starts a killed broker on the same data and ports; resolves when it can be reached. */
  restart(): Promise<void>;
  /** Ends the broker, if it runs, and removes its data. */
  stop(): Promise<void>;
}

/** What the owner process of a broker is told. */
export interface KafkaOwnerOptions {
  /** Folder of the broker's Java archives. */
  readonly jars: string;
  /** Also listens with SASL, with TLS and with both, and lets only `service` and those without a name do anything. */
  readonly secured?: boolean;
  /** The port that clients are told to connect to: that of something in between. */
  readonly advertisedPort?: number;
}

export { kafkaUnavailable } from "../../../commands/stack/kafka-server.ts";

const ownProgram = fileURLToPath(new URL("./kafka-owner.ts", import.meta.url));

/** Starts a broker that ends with this process, even if this one is killed. */
export async function startKafkaBroker(options: Omit<KafkaOwnerOptions, "jars"> = {}): Promise<KafkaBroker> {
  const jars = brokerJarsFolder();
  const child = spawn(process.execPath, [ownProgram, JSON.stringify({ jars, ...options })], {
    stdio: ["pipe", "pipe", "pipe"],
    detached: true,
  });
  const owner = new KafkaOwner(child);
  const addresses = (await owner.answer()) as KafkaAddresses;
  return {
    ...addresses,
    kill: () => owner.tell("kill"),
    restart: () => owner.tell("start"),
    stop: () => owner.end(),
  };
}

/** The other side of kafka-owner.ts. */
class KafkaOwner {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #failure: Promise<string>;
  readonly #ended: Promise<unknown>;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    this.#failure = text(child.stderr);
    this.#ended = once(child, "close");
    child.stdin.on("error", () => undefined);
  }

  async answer(): Promise<object> {
    const { done, value } = await this.#lines.next();
    if (done) throw new Error((await this.#failure).trim());
    return JSON.parse(value) as object;
  }

  async tell(line: string): Promise<void> {
    this.#child.stdin.write(`${line}\n`);
    await this.answer();
  }

  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }
}
