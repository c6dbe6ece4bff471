import { execFile } from "node:child_process";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { usageEvent } from "../test/support/services/usage-events.ts";
import { startTestUsageServer, type TestUsageServer } from "../test/support/services/usage-server.ts";
import { inheritedEnvironment } from "./stack/child.ts";

const script = new URL("rebuild-activity.ts", import.meta.url).pathname;
const dayMs = 86_400_000;
/** Well inside of what is kept, whenever the test runs. */
const [first, second, third] = [3, 2, 1].map((days) =>
  new Date(Date.now() - days * dayMs).toISOString().slice(0, 10),
);
let server: TestUsageServer;

beforeAll(async () => {
  server = await startTestUsageServer({ retentionDays: 10 });
});

afterAll(() => server.close());

beforeEach(async () => {
  await sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(server.database);
  await server.record(
    usageEvent({ ended: `${first}T12:00:00Z` }),
    usageEvent({ eventId: "gen-tts-2", ended: `${second}T12:00:00Z` }),
    usageEvent({ eventId: "gen-tts-3", ended: `${second}T12:00:00Z`, keyHash: "0".repeat(64) }),
  );
});

function rebuild(args: string, environment: NodeJS.ProcessEnv = {}) {
  const env = {
    ...inheritedEnvironment(),
    USAGE_URL: server.url,
    ADMIN_KEY_FILE: server.account.keyFiles.keyFile("operator"),
    ...environment,
  };
  const words = args.split(" ").filter((word) => word !== "");
  return new Promise<{ code: unknown; out: string; error: string }>((resolve) => {
    execFile(process.execPath, [script, ...words], { env }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, out, error });
    });
  });
}

test("says day by day that roll-ups are equal", async () => {
  const out = [first, second, third].map((day) => `${day}\tequal\n`).join("");
  expect(await rebuild(`--from ${first} --to ${third} --dry-run`)).toEqual({ code: 0, out, error: "" });
  expect(await rebuild(`--from ${first}`)).toEqual({ code: 0, out: `${first}\tequal\n`, error: "" });
});

test("finds differences, fails because of them, and mends them when told to", async () => {
  await sql`UPDATE activity SET requests = 7 WHERE day = ${second}`.execute(server.database);
  const span = `--from ${first} --to ${second}`;
  const found = await rebuild(`${span} --dry-run`);
  expect(found).toEqual({ code: 1, out: `${first}\tequal\n${second}\t2 cells differ\n`, error: "" });
  const mended = await rebuild(`${span} --operator ada`);
  expect(mended).toEqual({ code: 0, out: `${first}\tequal\n${second}\t2 cells mended\n`, error: "" });
  expect((await rebuild(`${span} --dry-run`)).code).toBe(0);
});

test("leaves pruned days alone", async () => {
  const { code, out } = await rebuild("--from 2020-02-28 --to 2020-03-01 --dry-run");
  expect(code).toBe(0);
  expect(out).toBe(
    ["2020-02-28", "2020-02-29", "2020-03-01"]
      .map((day) => `${day}\tleft alone: records of it are pruned\n`)
      .join(""),
  );
});

test("prints how it is used", async () => {
  expect((await rebuild("--help")).out).toContain("--dry-run");
});

test.for<[string, NodeJS.ProcessEnv, number, RegExp]>([
  ["", {}, 2, /--from is required/],
  ["--from 2030-02-30", {}, 2, /take a date written YYYY-MM-DD/],
  ["--from 2030-02-02 --to 2030-02-01", {}, 2, /--to lies before --from/],
  ["--since 2030-02-02", {}, 2, /--since/],
  [`--from ${first}`, { USAGE_URL: "http://127.0.0.1:1" }, 5, /at http:\/\/127.0.0.1:1 does not answer/],
  [`--from ${first}`, { USAGE_URL: "nowhere" }, 2, /USAGE_URL must be/],
  [`--from ${first}`, { ADMIN_KEY_FILE: "absent.jwk" }, 6, /absent.jwk can't be read .* set ADMIN_KEY_FILE/],
])("%s with %o exits with %i and one clear line", async ([args, environment, exit, message]) => {
  const { code, out, error } = await rebuild(args, environment);
  expect([code, out]).toEqual([exit, ""]);
  expect(error).toMatch(message);
  expect(error).toMatch(/^error: [^\n]+\n$/);
});

test("a key that is not the operator's opens nothing", async () => {
  const environment = { ADMIN_KEY_FILE: server.account.keyFiles.keyFile("usage") };
  expect((await rebuild(`--from ${first}`, environment)).error).toContain("of usage, not of operator");
});
