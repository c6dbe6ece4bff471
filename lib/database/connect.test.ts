import { type Generated, type Kysely, sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";

interface Tables {
  reading: { id: Generated<bigint>; amount: bigint; day: string; at: Date; amounts: bigint[] };
}

let database: TestDatabase;
let db: Kysely<Tables>;

beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase<Tables>({ url: database.url, schema: "metering", log: silentLog });
  await db.schema.createSchema("metering").execute();
});

afterAll(async () => {
  await db.destroy();
  await database.drop();
});

async function setting(kysely: Kysely<Tables>, name: string): Promise<string | undefined> {
  const { rows } = await sql<{ value: string }>`SELECT current_setting(${name}) AS value`.execute(kysely);
  return rows[0]?.value;
}

/** Lines that a logger wrote, parsed. */
function recordingLog() {
  const lines: { level: string; msg: string }[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { lines, log: createLog({ name: "test", level: "debug", destination: { write } }) };
}

test("64-bit numbers, dates and times arrive without loss and names resolve in the schema", async () => {
  await sql`CREATE TABLE reading (id bigserial PRIMARY KEY, amount int8, day date, at timestamptz, amounts int8[])`.execute(
    db,
  );
  const at = new Date("2026-02-28T23:59:59.123Z");
  const largest = 9_223_372_036_854_775_807n;
  await db
    .insertInto("reading")
    .values({ amount: largest, day: "2026-02-28", at, amounts: [-1n, largest] })
    .execute();
  const row = await db
    .selectFrom("metering.reading" as "reading")
    .selectAll()
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ id: 1n, amount: largest, day: "2026-02-28", at, amounts: [-1n, largest] });
  const { rows } = await sql`SELECT '{1,NULL}'::int8[] AS some, '{2026-01-01}'::date[] AS days`.execute(db);
  expect(rows).toEqual([{ some: [1n, null], days: ["2026-01-01"] }]);
});

test("every operation is bounded and commits are durable", async () => {
  expect(await setting(db, "statement_timeout")).toBe("15s");
  expect(await setting(db, "lock_timeout")).toBe("5s");
  expect(await setting(db, "idle_in_transaction_session_timeout")).toBe("15s");
  expect(await setting(db, "synchronous_commit")).toBe("on");
  expect(await setting(db, "application_name")).toBe("media-gateway metering");
});

test("the URL's own settings hold and can't displace the schema", async () => {
  const url = `${database.url}?statement_timeout=1234&options=-c%20search_path%3Dpublic%20-c%20work_mem%3D8MB`;
  const other = connectDatabase<Tables>({ url, schema: "metering", log: silentLog });
  try {
    expect(await setting(other, "search_path")).toBe("metering");
    expect(await setting(other, "work_mem")).toBe("8MB");
    expect(await setting(other, "statement_timeout")).toBe("1234ms");
  } finally {
    await other.destroy();
  }
});

test("no more connections are opened than allowed", async () => {
  const few = connectDatabase<Tables>({
    url: database.url,
    schema: "metering",
    log: silentLog,
    maxConnections: 2,
  });
  try {
    const pids = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(few);
        return rows[0]?.pid;
      }),
    );
    expect(new Set(pids).size).toBe(2);
  } finally {
    await few.destroy();
  }
});

test("connections that the server cuts, idle or in use, are logged and replaced", async () => {
  const { lines, log } = recordingLog();
  const cut = connectDatabase<Tables>({ url: database.url, schema: "metering", log });
  const terminate = (pid: unknown) => sql`SELECT pg_terminate_backend(${pid})`.execute(db);
  const ownPid = async (kysely: Kysely<Tables>) =>
    (await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(kysely)).rows[0]?.pid;
  try {
    const idle = await ownPid(cut);
    await terminate(idle);
    await expect.poll(() => lines.map(({ msg }) => msg)).toContain("idle database connection broke");
    const inUse = cut.transaction().execute(async (transaction) => {
      await terminate(await ownPid(transaction));
      await expect.poll(() => lines.map(({ msg }) => msg)).toContain("database connection broke");
      await ownPid(transaction);
    });
    await expect(inUse).rejects.toThrow();
    expect(await ownPid(cut)).toEqual(expect.any(Number));
  } finally {
    await cut.destroy();
  }
});

test("a schema name that would need quoting is refused", () => {
  expect(() => connectDatabase({ url: database.url, schema: "a b", log: silentLog })).toThrow("a b");
});
