import type { TestProject } from "vitest/node";
import { offer } from "../processes/offer.ts";
import { startKafkaBroker } from "./kafka-broker.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Loopback port that answers each connection with the addresses of the run's Kafka as JSON. */
    testKafkaPort: number;
  }
}

/** Offers one Kafka broker to the whole run, as postgres-setup.ts does PostgreSQL. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const kafka = await offer({
    start: () => startKafkaBroker({ secured: true }),
    tell: async ({ brokers, secured }) => JSON.stringify({ brokers, secured }),
    end: (broker) => broker.stop(),
  });
  provide("testKafkaPort", kafka.port);
  return () => kafka.close();
}
