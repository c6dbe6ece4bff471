import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { Noun } from "../command.ts";
import { type Cli, urlNames } from "../connect.ts";
import { printable } from "../output.ts";
import type { Check, Finding, Surroundings } from "./check.ts";
import { checkDisk } from "./disk.ts";
import { checkAdminKey, checkBootstrapKeys, checkKeySet, checkMasterKeys } from "./keys.ts";
import { checkAdminCall, checkServices } from "./services.ts";
import { checkKafka, checkPostgres, checkRedis } from "./stores.ts";

/** Looks at everything that the processes need. */
export const doctor: Noun = {
  name: "doctor",
  summary: "look at everything that the processes need, and say what to do",
  verbs: [
    {
      name: "",
      summary: "look at everything that the processes need, and say what to do",
      details: `Exits 1 when something is wrong; what is only worth a look leaves it at 0. Without ACCOUNT_URL and the other URLs of
services it looks at standalone on this machine (DATA_DIR, RPC_PORT, PORT); with them at what the environment names:
DATABASE_URL, KAFKA_BROKERS, REDIS_URL, SERVICE_JWKS_FILE, MASTER_KEYS, ADMIN_KEY_FILE, PUBLIC_URL. Give it the environment
that the processes have.`,
      async run(_, cli) {
        const findings = await examine(surroundingsOf(process.env), cli);
        const wrong = findings.filter(({ health }) => health === "wrong").length;
        return {
          columns: ["what", "health", "found", "todo"],
          rows: findings.map((finding) => ({ ...finding })),
          notes: [wrong === 0 ? "nothing is wrong" : `${wrong} of ${findings.length} are wrong`],
          isWrong: wrong > 0,
        };
      },
    },
  ],
};

/** What the variables say about where things are. */
export function surroundingsOf(env: NodeJS.ProcessEnv): Surroundings {
  const isStandalone = [...Object.values(urlNames), "SERVICE_JWKS_FILE"].every((name) => !env[name]);
  return { env, isStandalone, dataDir: env.DATA_DIR || ".data" };
}

async function examine(surroundings: Surroundings, cli: Cli): Promise<readonly Finding[]> {
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
  return { what, health: "wrong", found, todo: "mend what the line names" };
}
