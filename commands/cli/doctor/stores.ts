import { probeDatabase } from "../../../lib/database/probe.ts";
import { createKafkaBus } from "../../../lib/events/kafka/kafka-bus.ts";
import {
  kafkaConnection,
  kafkaSpec,
  topicLayout,
  topicSpec,
} from "../../../lib/events/kafka/kafka-config.ts";
import { allTopics } from "../../../lib/events/topics.ts";
import { RedisConnection } from "../../../lib/rate-limit/redis-connection.ts";
import { databaseUrlVar, readConfig, redisUrlVar } from "../../../lib/runtime/config.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { schemas } from "../../../standalone/schemas.ts";
import { type Finding, notChecked, reasonOf, type Surroundings } from "./check.ts";

/** The oldest PostgreSQL that the SQL is written for. */
const oldestPostgres = 15;
/** How far clocks may differ before tokens are refused, milliseconds. */
const clockLimitMs = 10_000;
const clockWarningMs = 1000;
const timeoutMs = 10_000;

/** PostgreSQL, what of its schemas is missing, and how its clock differs from this machine's. */
export async function checkPostgres({ env, isStandalone }: Surroundings): Promise<readonly Finding[]> {
  const { DATABASE_URL } = readConfig({ DATABASE_URL: databaseUrlVar({ default: undefined }) }, env);
  if (DATABASE_URL === undefined) {
    if (!isStandalone) return [notChecked("PostgreSQL", "DATABASE_URL")];
    const found = "standalone runs its own, on this machine and its clock; the services' health tells of it";
    return [{ what: "PostgreSQL", health: "ok", found }];
  }
  try {
    const { version, clockAheadMs, clockErrorMs, pending } = await probeDatabase(DATABASE_URL, schemas);
    const migrations = [...pending].map(([schema, names]) => migrationFinding(schema, names));
    return [versionFinding(version), ...migrations, clockFinding(clockAheadMs, clockErrorMs)];
  } catch (thrown) {
    const remedy = "see that PostgreSQL runs, and that address, role and password in DATABASE_URL are right";
    return [{ what: "PostgreSQL", health: "wrong", found: `it can't be used (${reasonOf(thrown)})`, remedy }];
  }
}

function versionFinding(version: string): Finding {
  const found = `version ${version}`;
  if (Number.parseInt(version, 10) >= oldestPostgres) return { what: "PostgreSQL", health: "ok", found };
  return { what: "PostgreSQL", health: "wrong", found, remedy: `upgrade it to ${oldestPostgres} or newer` };
}

function migrationFinding(schema: string, pending: readonly string[]): Finding {
  const what = `migrations of ${schema}`;
  if (pending.length === 0) return { what, health: "ok", found: "all there" };
  return { what, health: "wrong", found: `missing: ${pending.join(", ")}`, remedy: "run database migrate" };
}

/** Exported for its test: no clock can be set there. */
export function clockFinding(aheadMs: number, errorMs: number): Finding {
  const offMs = Math.max(0, Math.abs(aheadMs) - errorMs);
  const found = `PostgreSQL's is ${Math.abs(aheadMs)} ms ${aheadMs < 0 ? "behind" : "ahead of"} this machine's`;
  if (offMs <= clockWarningMs) return { what: "clocks", health: "ok", found };
  const remedy = "let all machines set their clocks by NTP: tokens are refused beyond 10 s";
  return { what: "clocks", health: offMs > clockLimitMs ? "wrong" : "look", found, remedy };
}

/** Kafka and its topics. */
export async function checkKafka({ env, isStandalone }: Surroundings): Promise<readonly Finding[]> {
  if ((env.KAFKA_BROKERS ?? "") === "") {
    if (!isStandalone) return [notChecked("Kafka", "KAFKA_BROKERS")];
    return [{ what: "Kafka", health: "ok", found: "not used: events travel on PostgreSQL" }];
  }
  const config = readConfig({ ...kafkaSpec, ...topicSpec }, env);
  const bus = createKafkaBus({ connection: kafkaConnection(config), clientId: "doctor", log: silentLog });
  try {
    const topics = allTopics(topicLayout(config));
    const states = await bus.checkTopics(topics, AbortSignal.timeout(timeoutMs));
    return [
      { what: "Kafka", health: "ok", found: "it answers" },
      ...states.map(({ name, differences }): Finding => {
        const what = `topic ${name}`;
        if (differences.length === 0) return { what, health: "ok", found: "as configured" };
        const remedy = "run topic create with the variables that processes have, or change the topic";
        return { what, health: "wrong", found: differences.join("; "), remedy };
      }),
    ];
  } catch (thrown) {
    const remedy = "see that the brokers run and that KAFKA_BROKERS and the variables beside it are right";
    return [{ what: "Kafka", health: "wrong", found: `it can't be used (${reasonOf(thrown)})`, remedy }];
  } finally {
    await bus.close();
  }
}

/** Redis, which replicas count requests in. */
export async function checkRedis({ env, isStandalone }: Surroundings): Promise<Finding> {
  const { REDIS_URL: url } = readConfig({ REDIS_URL: redisUrlVar({ default: undefined }) }, env);
  if (url === undefined) {
    if (!isStandalone) return notChecked("Redis", "REDIS_URL");
    return { what: "Redis", health: "ok", found: "not used: limits are counted in the process" };
  }
  const connection = new RedisConnection({ url, openTimeoutMs: timeoutMs, onLost: () => undefined });
  try {
    await connection.open();
    return { what: "Redis", health: "ok", found: "it answers" };
  } catch (thrown) {
    const remedy = "see that Redis runs and that REDIS_URL is right; meanwhile each replica counts by itself";
    return { what: "Redis", health: "wrong", found: `it can't be used (${reasonOf(thrown)})`, remedy };
  } finally {
    await connection.close();
  }
}
