import { kafkaServerProperties } from "../../../commands/stack/kafka-server.ts";

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

/** The configuration file of a broker. */
export function kafkaProperties({ dataDir, ports, keyStore, advertisedPort }: KafkaSettings): string {
  const { controller, plain, sasl, tls, saslTls } = ports;
  return kafkaServerProperties({
    dataDir,
    controllerPort: controller,
    listeners: {
      PLAIN: { port: plain, advertisedPort, protocol: "PLAINTEXT" },
      ...(sasl === undefined ? {} : { SASL: { port: sasl, protocol: "SASL_PLAINTEXT" } }),
      ...(tls === undefined ? {} : { TLS: { port: tls, protocol: "SSL" } }),
      ...(saslTls === undefined ? {} : { SASL_TLS: { port: saslTls, protocol: "SASL_SSL" } }),
    },
    ...(keyStore === undefined ? {} : { properties: securedProperties(keyStore) }),
  });
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
