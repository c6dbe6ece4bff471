/**
 * Brings a schema forward to what the code expects. Migrations only go forward; each is written so that the release
 * before it still works on its result, so replicas of two releases may run side by side.
 *
 * 1. One migrator at a time for each schema: all that changes anything happens under a session advisory lock.
 * 2. The migrations of one run are one transaction: a run that fails leaves nothing behind.
 * 3. A schema at head, or ahead of this code, is left alone: no lock is taken and no right to create is needed.
 */
import { type Kysely, type RawBuilder, sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import type { Log } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";

/** A schema and the steps that make it, by name; names sort in the order in which they run. */
export interface SchemaMigrations {
  readonly schema: string;
  readonly migrations: Readonly<Record<string, Migration>>;
}

/** The migration that is some statements, run in their order. */
export function sqlMigration(...statements: readonly RawBuilder<unknown>[]): Migration {
  return {
    async up(database) {
      for (const statement of statements) await statement.execute(database);
    },
  };
}

/** First key of the advisory locks that migrations take; the second is a hash of the schema's name. */
const lockClass = 0x6d67_6d67;

/** Longest wait for another migrator, and longest single statement of a migration. */
const migrationTimeoutMs = 600_000;

/** Longest wait of a migration for a table that others use, while new queries queue behind it. */
const tableLockTimeoutMs = 10_000;

/** Runs what is pending, making the schema first if need be, and returns the names of what it ran. Throws on failure. */
export async function migrateToLatest<DB>(db: Kysely<DB>, steps: SchemaMigrations): Promise<string[]> {
  if ((await pendingMigrations(db, steps)).length === 0) return []; // 3.
  return db.connection().execute(async (connection) => {
    try {
      await lock(connection, steps.schema); // 1.
      return await migrate(connection, steps);
    } finally {
      await unlock(connection, steps.schema).catch(() => undefined);
    }
  });
}

/** The same on a connection of its own, which is closed again. */
export async function migrateSchema(url: string, steps: SchemaMigrations, log: Log): Promise<string[]> {
  const database = connectDatabase({ url, schema: steps.schema, log, maxConnections: 2 });
  try {
    return await migrateToLatest(database, steps);
  } finally {
    await database.destroy();
  }
}

/** Why a service can't work on its schema yet, for its readiness. */
export async function schemaProblems<DB>(
  db: Kysely<DB>,
  steps: SchemaMigrations,
): Promise<readonly string[]> {
  const pending = await pendingMigrations(db, steps).catch(() => undefined);
  if (pending === undefined) return ["the database is away"];
  return pending.length === 0 ? [] : [`migrations pending: ${pending.join(", ")}`];
}

/** Names of the migrations that the database lacks, in order; empty means that the schema is at head. */
export async function pendingMigrations<DB>(
  db: Kysely<DB>,
  { schema, migrations }: SchemaMigrations,
): Promise<string[]> {
  const names = Object.keys(migrations).sort();
  const table = sql.table(`${schema}.kysely_migration`);
  const { rows: found } = await sql<{ present: boolean }>`
    SELECT to_regclass(${`${schema}.kysely_migration`}) IS NOT NULL AS present`.execute(db);
  if (found[0]?.present !== true) return names;
  const { rows } = await sql<{ name: string }>`SELECT name FROM ${table}`.execute(db);
  const executed = new Set(rows.map(({ name }) => name));
  return names.filter((name) => !executed.has(name));
}

async function migrate<DB>(db: Kysely<DB>, { schema, migrations }: SchemaMigrations): Promise<string[]> {
  await ensureSchema(db, schema);
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...migrations }) },
    migrationTableSchema: schema,
  });
  const { error, results = [] } = await migrator.migrateToLatest(); // 2.
  if (error !== undefined) {
    const failed = results.find(({ status }) => status === "Error")?.migrationName;
    const what = failed === undefined ? `schema ${schema}` : `migration ${failed} of schema ${schema}`;
    throw new Error(`${what} failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  return results.map(({ migrationName }) => migrationName);
}

/** Asks first: `CREATE SCHEMA IF NOT EXISTS` wants the right to create even where there is nothing to create. */
async function ensureSchema<DB>(db: Kysely<DB>, schema: string): Promise<void> {
  const { rows } = await sql<{ present: boolean }>`
    SELECT to_regnamespace(${schema}) IS NOT NULL AS present`.execute(db);
  if (rows[0]?.present !== true) await db.schema.createSchema(schema).execute();
}

async function lock<DB>(db: Kysely<DB>, schema: string): Promise<void> {
  await sql`SELECT set_config('statement_timeout', ${String(migrationTimeoutMs)}, false),
    set_config('lock_timeout', '0', false), set_config('search_path', ${schema}, false)`.execute(db);
  await sql`SELECT pg_advisory_lock(${lockClass}, hashtext(${schema}))`.execute(db);
  await sql`SELECT set_config('lock_timeout', ${String(tableLockTimeoutMs)}, false)`.execute(db);
}

/** Gives the connection back as it was. Fails on a broken one only, which the pool drops and its lock with it. */
async function unlock<DB>(db: Kysely<DB>, schema: string): Promise<void> {
  await sql`SELECT pg_advisory_unlock(${lockClass}, hashtext(${schema}))`.execute(db);
  for (const setting of ["statement_timeout", "lock_timeout", "search_path"]) {
    await sql`RESET ${sql.ref(setting)}`.execute(db);
  }
}
