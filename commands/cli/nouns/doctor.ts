import type { Noun } from "../command.ts";

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
        const { examine, surroundingsOf } = await import("../doctor/examine.ts");
        const findings = await examine(surroundingsOf(cli.env), cli);
        const wrong = findings.filter(({ health }) => health === "wrong").length;
        return {
          columns: ["what", "health", "found", "remedy"],
          rows: findings.map((finding) => ({ ...finding })),
          notes: [wrong === 0 ? "nothing is wrong" : `${wrong} of ${findings.length} are wrong`],
          isWrong: wrong > 0,
        };
      },
    },
  ],
};
