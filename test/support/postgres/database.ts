import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import { inject } from "vitest";

/** A fresh, empty database on the test run's PostgreSQL. */
export interface TestDatabase {
  readonly url: string;
  /** Removes the database and cuts off whoever is still connected. */
  drop(): Promise<void>;
}

/** Makes a database that nothing else uses; the first call of a test run starts PostgreSQL. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const server = await testPostgresUrl();
  const name = `test_${randomBytes(8).toString("hex")}`;
  await execute(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = name;
  return { url: url.href, drop: () => execute(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

async function testPostgresUrl(): Promise<string> {
  const socket = connect(inject("testPostgresPort"), "127.0.0.1");
  await once(socket, "connect");
  const answer = await text(socket);
  if (!answer.startsWith("postgres://")) throw new Error(answer);
  return answer;
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
