import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { type Cli, urlNames } from "../connect.ts";
import { printable } from "../output.ts";
import type { Check, Finding, Surroundings } from "./check.ts";
import { checkDisk } from "./disk.ts";
import { checkAdminKey, checkBootstrapKeys, checkKeySet, checkMasterKeys } from "./keys.ts";
import { checkAdminCall, checkServices } from "./services.ts";
import { checkKafka, checkPostgres, checkRedis } from "./stores.ts";

/** What the variables say about where things are. */
export function surroundingsOf(env: NodeJS.ProcessEnv): Surroundings {
  const isStandalone = [...Object.values(urlNames), "SERVICE_JWKS_FILE"].every((name) => !env[name]);
  return { env, isStandalone, dataDir: env.DATA_DIR || ".data" };
}

/** Looks at everything at once. */
export async function examine(surroundings: Surroundings, cli: Cli): Promise<readonly Finding[]> {
  const checks: Readonly<Record<string, Check>> = {
    PostgreSQL: () => checkPostgres(surroundings),
    Kafka: () => checkKafka(surroundings),
    Redis: () => checkRedis(surroundings),
    services: () => checkServices(surroundings, cli),
    "the operator's key": () => checkAdminKey(surroundings),
    "a call with the operator's key": () => checkAdminCall(cli),
    "the processes' public keys": () => checkKeySet(surroundings),
    "the master keys": () => checkMasterKeys(surroundings),
    "the first keys": () => checkBootstrapKeys(surroundings),
    "disk space": () => checkDisk(surroundings),
  };
  const found = await Promise.all(
    Object.entries(checks).map(async ([what, check]) => {
      try {
        return await check();
      } catch (thrown) {
        return failed(what, thrown);
      }
    }),
  );
  return found.flat();
}

/** A variable that can't be read, for the most part: its message names it. */
function failed(what: string, thrown: unknown): Finding {
  const message = thrown instanceof Error ? thrown.message : DomainError.from(thrown).message;
  const found = printable(message.split("\n")[0] ?? "");
  return { what, health: "wrong", found, remedy: "mend what the line names" };
}
