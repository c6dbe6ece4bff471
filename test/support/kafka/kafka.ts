import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { inject, type TestContext } from "vitest";
import { type KafkaAddresses, kafkaUnavailable } from "./kafka-broker.ts";

/** Where a secured broker listens. */
export type SecuredKafkaAddresses = Required<KafkaAddresses>;

/** Skips a test when no broker can run here; with REQUIRE_SERVICES=1, as in CI, fails it. */
export function needKafka(context: TestContext): void {
  const reason = kafkaUnavailable();
  if (reason === undefined) return;
  if (process.env.REQUIRE_SERVICES === "1") throw new Error(reason);
  context.skip(reason);
}

/** The run's own Kafka, a secured broker, which the first call of a run starts. */
export async function testKafka(): Promise<SecuredKafkaAddresses> {
  const socket = connect(inject("testKafkaPort"), "127.0.0.1");
  await once(socket, "connect");
  const answer = await text(socket);
  if (!answer.startsWith("{")) throw new Error(answer);
  return JSON.parse(answer) as SecuredKafkaAddresses;
}
