/** Ports of a broker; the secured ones only where asked for. */
export interface KafkaPorts {
  readonly controller: number;
  readonly plain: number;
  readonly sasl?: number;
  readonly tls?: number;
  readonly saslTls?: number;
}

/** What a broker is configured with. */
export interface KafkaSettings {
  readonly dataDir: string;
  readonly ports: KafkaPorts;
  /** The port that clients are told to connect to, when it is not the one that the broker listens on. */
  readonly advertisedPort?: number | undefined;
  /** PKCS12; makes the broker a secured one. */
  readonly keyStore?: string | undefined;
}

/** Names and passwords that a secured broker knows. `guest` may do nothing. */
export const kafkaUsers = { service: "service-secret", guest: "guest-secret" } as const;

/** Password of the broker's key store. */
export const keyStorePassword = "key-store";

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

const protocols = {
  CONTROLLER: "PLAINTEXT",
  PLAIN: "PLAINTEXT",
  SASL: "SASL_PLAINTEXT",
  TLS: "SSL",
  SASL_TLS: "SASL_SSL",
};

/** The configuration file of a broker of one node (KRaft, Apache Kafka 4). */
export function kafkaProperties({ dataDir, ports, keyStore, advertisedPort }: KafkaSettings): string {
  const listeners = {
    PLAIN: ports.plain,
    ...(ports.sasl === undefined ? {} : { SASL: ports.sasl }),
    ...(ports.tls === undefined ? {} : { TLS: ports.tls }),
    ...(ports.saslTls === undefined ? {} : { SASL_TLS: ports.saslTls }),
  };
  const addresses = addressesOf(listeners);
  const properties = {
    ...base,
    "controller.quorum.voters": `1@localhost:${ports.controller}`,
    listeners: [...addresses, `CONTROLLER://localhost:${ports.controller}`].join(","),
    "advertised.listeners": addressesOf({ ...listeners, PLAIN: advertisedPort ?? ports.plain }).join(","),
    "listener.security.protocol.map": Object.entries(protocols)
      .map((entry) => entry.join(":"))
      .join(","),
    "log.dirs": dataDir,
    ...(keyStore === undefined ? {} : securedProperties(keyStore)),
  };
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

function addressesOf(listeners: Readonly<Record<string, number>>): string[] {
  return Object.entries(listeners).map(([name, port]) => `${name}://localhost:${port}`);
}

/** Without a name one may do everything, like `service`. */
function securedProperties(keyStore: string): Record<string, string> {
  const modules = "org.apache.kafka.common.security";
  const users = Object.entries(kafkaUsers).map(([name, password]) => `user_${name}="${password}"`);
  const saslOf = (listener: string) => ({
    [`listener.name.${listener}.plain.sasl.jaas.config`]: `${modules}.plain.PlainLoginModule required ${users.join(" ")};`,
    ...Object.fromEntries(
      ["scram-sha-256", "scram-sha-512"].map((mechanism) => [
        `listener.name.${listener}.${mechanism}.sasl.jaas.config`,
        `${modules}.scram.ScramLoginModule required;`,
      ]),
    ),
  });
  return {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    ...saslOf("sasl"),
    ...saslOf("sasl_tls"),
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": keyStore,
    "ssl.keystore.password": keyStorePassword,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:service",
  };
}
