import pg from "pg";
import { expect, test } from "vitest";
import { createTestDatabase } from "./database.ts";

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

test("each test database is empty and its own, and is gone after drop", async () => {
  const [one, two] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  try {
    await query(one.url, "CREATE TABLE mark (id int)");
    await query(two.url, "CREATE TABLE mark (id int)");
    expect(await query(one.url, "SHOW fsync")).toEqual([{ fsync: "off" }]);
  } finally {
    await one.drop();
    await two.drop();
  }
  await expect(query(one.url, "SELECT 1")).rejects.toThrow("does not exist");
});

test("drop cuts off whoever is still connected", async () => {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const cutOff = new Promise<Error>((resolve) => client.on("error", resolve));
  await database.drop();
  expect((await cutOff).message).toMatch(/terminat/);
});
