import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { TestProject } from "vitest/node";
import { type KafkaBroker, startKafkaBroker } from "./kafka-broker.ts";
import { type OwnerProcess, spawnOwner } from "./owner-process.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Loopback port that answers each connection with the URL of the run's PostgreSQL, started when first asked for. */
    testPostgresPort: number;
    /** The same for the run's Kafka: its addresses as JSON. */
    testKafkaPort: number;
  }
}

/**
 * Offers one PostgreSQL cluster and one Kafka broker to the whole run. Each belongs to a process of its own, which
 * removes it when this one ends, also when this one is killed. What this returns stops them.
 */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const postgres = await offer<OwnerProcess>(startPostgres, ({ url }) => url);
  const kafka = await offer<KafkaBroker>(
    () => startKafkaBroker({ secured: true }),
    async ({ brokers, secured }) => JSON.stringify({ brokers, secured }),
  );
  provide("testPostgresPort", postgres.port);
  provide("testKafkaPort", kafka.port);
  return async () => {
    await Promise.all([postgres.close((owner) => owner.end()), kafka.close((broker) => broker.stop())]);
  };
}

/** A port that starts something when first asked, and answers each connection with what `tell` says of it, or why not. */
async function offer<T>(start: () => Promise<T>, tell: (started: T) => Promise<string>) {
  let started: Promise<T> | undefined;
  const listener = createServer((socket) => {
    socket.on("error", () => undefined);
    started ??= start();
    started.then(tell).then(
      (answer) => socket.end(answer),
      (thrown: unknown) => socket.end(String(thrown)),
    );
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    async close(end: (started: T) => Promise<void>): Promise<void> {
      listener.close();
      const running = await started?.catch(() => undefined);
      if (running !== undefined) await end(running);
    },
  };
}

async function startPostgres(): Promise<OwnerProcess> {
  return spawnOwner({ dataDir: await temporaryDirectory(), durable: false, temporary: true });
}
