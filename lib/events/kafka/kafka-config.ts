import {
  booleanVar,
  ConfigError,
  type ConfigOf,
  type ConfigSpec,
  hostPortListVar,
  intVar,
  textVar,
  wordVar,
} from "../../runtime/config.ts";
import type { TopicLayout } from "../topics.ts";

const mechanisms = ["plain", "scram-sha-256", "scram-sha-512"] as const;

/**
 * Where Kafka is and how it is spoken to. With KAFKA_SSL the brokers' certificates must be signed by an authority that
 * Node trusts; NODE_EXTRA_CA_CERTS, which Node reads at its start, names a PEM file of more of them.
 */
export const kafkaSpec = {
  KAFKA_BROKERS: hostPortListVar(),
  KAFKA_SSL: booleanVar({ default: false }),
  KAFKA_SASL_MECHANISM: wordVar(mechanisms)({ default: undefined }),
  KAFKA_USERNAME: textVar({ default: undefined }),
  KAFKA_PASSWORD: textVar({ default: undefined }),
} as const satisfies ConfigSpec;

/** How topics are laid out when they are made. */
export const topicSpec = {
  KAFKA_PARTITIONS: intVar(1, 10_000)({ default: 12 }),
  KAFKA_REPLICATION: intVar(1, 100)({ default: 1 }),
  KAFKA_RETENTION_DAYS: intVar(1, 36_500)({ default: 30 }),
} as const satisfies ConfigSpec;

/** How to reach a Kafka cluster. `sasl` is a secret. */
export interface KafkaConnection {
  /** Each `host:port`; the first that answers names the others. */
  readonly brokers: readonly string[];
  readonly ssl: boolean;
  readonly sasl?: {
    readonly mechanism: (typeof mechanisms)[number];
    readonly username: string;
    readonly password: string;
  };
}

/** The connection that is configured. Throws ConfigError when mechanism, name and password are not all there or all not. */
export function kafkaConnection(config: ConfigOf<typeof kafkaSpec>): KafkaConnection {
  const { KAFKA_BROKERS: brokers, KAFKA_SSL: ssl } = config;
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_USERNAME: username, KAFKA_PASSWORD: password } = config;
  const given = Object.entries({
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_USERNAME: username,
    KAFKA_PASSWORD: password,
  });
  const [present] = given.find(([, value]) => value !== undefined) ?? [];
  const [missing] = given.find(([, value]) => value === undefined) ?? [];
  if (present !== undefined && missing !== undefined) {
    throw new ConfigError(`configuration: ${missing} is required with ${present}`);
  }
  if (mechanism === undefined || username === undefined || password === undefined) return { brokers, ssl };
  return { brokers, ssl, sasl: { mechanism, username, password } };
}

/** The layout that is configured. */
export function topicLayout(config: ConfigOf<typeof topicSpec>): TopicLayout {
  return {
    partitions: config.KAFKA_PARTITIONS,
    replication: config.KAFKA_REPLICATION,
    retentionMs: config.KAFKA_RETENTION_DAYS * 86_400_000,
  };
}
