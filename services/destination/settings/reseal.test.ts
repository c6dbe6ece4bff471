import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { DestinationAdminService } from "../../../gen/media/destination/v1/destination_admin_service_pb.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { createSealer } from "../../../lib/secrets/seal.ts";
import {
  addDestination,
  testKeeper,
  testKeyText,
  testSealer,
} from "../../../test/support/services/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationServer,
} from "../../../test/support/services/destination-server.ts";
import { plainTypes } from "../../../test/support/services/destination-type.ts";
import { testUuid } from "../../../test/support/services/usage-events.ts";
import { changeDestination, deleteDestination } from "./destinations.ts";
import { resealDestinations } from "./reseal.ts";

const url = "https://receiver.test/";
const newKeyText = `new:${Buffer.alloc(32, 8).toString("base64")}`;
const newSealer = createSealer(readMasterKeys(`${newKeyText},${testKeyText}`));
const keeper = testKeeper(plainTypes, newSealer);
const { signal } = new AbortController();
let server: TestDestinationServer;

beforeAll(async () => {
  server = await startTestDestinationServer();
});
afterAll(() => server.close());
beforeEach(async () => {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(server.database);
});

const add = (account: number, token = "old") =>
  addDestination(server.database, { account_id: testUuid(account), url, config: { token } });

async function stored(id: string) {
  return server.database
    .selectFrom("destination")
    .select(["id", "account_id", "version", "sealed"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
}

test("all settings that can be opened are sealed with the newest key, and counted by how they stood", async () => {
  const { database } = server;
  const [first, other, broken, damaged, deleted] = [
    await add(1, "token of the first"),
    await add(2),
    await add(3),
    await add(4),
    await add(5),
  ];
  await sql`UPDATE destination SET sealed = (SELECT sealed FROM destination WHERE id = ${other})
    WHERE id = ${broken}`.execute(database);
  await sql`UPDATE destination SET sealed = decode('00', 'hex') WHERE id = ${damaged}`.execute(database);
  await deleteDestination(database, { id: deleted, accountId: testUuid(5) });
  const sums = await resealDestinations(database, keeper, signal);
  expect(sums).toEqual({ resealed: 2, current: 0, unreadable: 2 });
  const row = await stored(first);
  expect(newSealer.keyIdOf(row.sealed ?? Buffer.alloc(0))).toBe("new");
  const keeperOfNew = testKeeper(plainTypes, createSealer(readMasterKeys(newKeyText)));
  expect(keeperOfNew.open(row)).toMatchObject({ token: "token of the first" });
  expect(testKeeper().open(row)).toBeUndefined();
  expect(testSealer.keyIdOf((await stored(broken)).sealed ?? Buffer.alloc(0))).toBe("test");
  expect((await stored(damaged)).sealed).toEqual(Buffer.from([0]));
  expect((await stored(deleted)).sealed).toBeNull();
  expect(await resealDestinations(database, keeper, signal)).toEqual({
    resealed: 0,
    current: 2,
    unreadable: 2,
  });
});

test("more than one batch, by two replicas at once and beside changes, is done wholly", async () => {
  const { database } = server;
  const ids = [];
  for (let account = 0; account < 250; account++) ids.push(await add(account));
  const [changed = ""] = ids.slice(120);
  const before = await stored(changed);
  const config = { url, method: "POST", headers: {}, token: "changed meanwhile" };
  const sealed = testKeeper().seal(config, before);
  const change = { name: "changed", sealed } as Parameters<typeof changeDestination>[2];
  const [one, two, row] = await Promise.all([
    resealDestinations(database, keeper, signal),
    resealDestinations(database, keeper, signal),
    changeDestination(database, before, change),
  ]);
  expect(row?.name).toBe("changed");
  for (const { resealed, current, unreadable } of [one, two]) {
    expect([resealed + current, unreadable]).toEqual([250, 0]);
  }
  await resealDestinations(database, keeper, signal);
  expect(await resealDestinations(database, keeper, signal)).toMatchObject({ resealed: 0, current: 250 });
  expect(keeper.open(await stored(changed))).toMatchObject({ token: "changed meanwhile" });
});

test("who asks for it and stops waiting ends it", async () => {
  await add(1);
  await expect(resealDestinations(server.database, keeper, AbortSignal.abort())).rejects.toThrow();
});

test("operators may ask for it, and hear how things stand", async () => {
  await add(1);
  await add(2);
  const operator = await server.account.tokenOf("operator", "destination");
  const client = server.client(DestinationAdminService, operator);
  expect(await client.resealDestinations({})).toMatchObject({ resealed: 0n, current: 2n, unreadable: 0n });
});
